import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";

/** What a schema refers to. */
export interface Survey {
  /** The JSON pointers of the root and of what a `$ref` names, or something that looks like one. */
  readonly targets: ReadonlySet<string>;
  /** Whether a keyword asks what the others have judged. */
  readonly tracks: boolean;
}

const root = "";
/** More than a schema has that is not refused. */
const maxLevels = 128;

/** Looks for references before the schema is read: what they lead to is compiled differently. */
export function survey(schema: JsonValue): Survey {
  const targets = new Set([root]);
  let tracks = false;

  function look(value: JsonValue, level: number): void {
    if (value === null || typeof value !== "object" || level > maxLevels)
      return;
    if (isJsonObject(value)) {
      const ref = value["$ref"];
      const pointer = typeof ref === "string" ? pointerOf(ref) : undefined;
      if (pointer !== undefined) targets.add(pointer);
      tracks ||= "unevaluatedItems" in value;
      tracks ||= "unevaluatedProperties" in value;
    }
    for (const part of Object.values<JsonValue>(value as JsonObject))
      look(part, level + 1);
  }

  look(schema, 0);
  return { targets, tracks };
}

/** The JSON pointer in a `$ref` to a place in the same document; undefined for any other. */
export function pointerOf(ref: string): string | undefined {
  const target = /^#(?<fragment>(?:\/.*)?)$/su.exec(ref)?.groups?.["fragment"];
  try {
    return target === undefined ? undefined : decodeURIComponent(target);
  } catch {
    // No percent encoding: no reference either.
    return undefined;
  }
}
