import { escaped } from "../../../errors.js";

/** Where a value is in a config: a list from the value up to the config itself. */
export interface Place {
  readonly parent: Place | null;
  readonly key: string | number;
  /** 0 for the config itself. */
  readonly depth: number;
}

/** The config itself. */
export const rootPlace: Place = { parent: null, key: "", depth: 0 };

const maxPointerChars = 120;

/** What is in the field or at the index `key` of what is at `place`. */
export function placeOf(place: Place, key: string | number): Place {
  return { parent: place, key, depth: place.depth + 1 };
}

/** As a JSON pointer, cut to what a message can hold; the config itself is `/`. */
export function pointerText(place: Place): string {
  const keys: string[] = [];
  for (let at = place; at.parent !== null; at = at.parent)
    keys.unshift(escapeKey(String(at.key).slice(0, maxPointerChars)));
  return escaped(`/${keys.join("/")}`, maxPointerChars);
}

/** A key as a JSON pointer writes it. */
export function escapeKey(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
