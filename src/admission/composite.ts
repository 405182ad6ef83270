import { isJsonObject, type JsonObject, type JsonValue } from "./json.js";

/** A step from an object to a field's value, or from a list to the element at an index. */
export type PathSegment = string | number;

/** What is at a path. */
export type FieldLookup =
  | { readonly kind: "found"; readonly value: JsonValue }
  /** `at` is the index of the segment that leads nowhere. */
  | { readonly kind: "missing"; readonly at: number };

/** The observed composite resource (XR), read field by field: it may be large. */
export interface CompositeResource {
  /** `metadata.namespace`, "" when there is none. */
  readonly namespace: string;
  /** `kind`, "" when there is none. */
  readonly kind: string;
  /** Own fields only. A field set to null is found. */
  field(path: readonly PathSegment[]): FieldLookup;
}

/** A composite resource that is in memory as a whole; undefined is one without fields. */
export function compositeFromJson(
  xr: JsonObject | undefined,
): CompositeResource {
  const field = (path: readonly PathSegment[]) => lookUp(xr ?? {}, path);
  return {
    namespace: textOf(field(["metadata", "namespace"])),
    kind: textOf(field(["kind"])),
    field,
  };
}

/** The text that was found; "" for what is missing or no text. */
export function textOf(lookup: FieldLookup): string {
  const value = lookup.kind === "found" ? lookup.value : "";
  return typeof value === "string" ? value : "";
}

function lookUp(root: JsonValue, path: readonly PathSegment[]): FieldLookup {
  let value = root;
  for (const [at, segment] of path.entries()) {
    const next = child(value, segment);
    if (next === undefined) return { kind: "missing", at };
    value = next;
  }
  return { kind: "found", value };
}

function child(value: JsonValue, segment: PathSegment): JsonValue | undefined {
  if (typeof segment === "number")
    return Array.isArray(value) ? (value[segment] as JsonValue) : undefined;
  if (!isJsonObject(value) || !Object.hasOwn(value, segment)) return undefined;
  return value[segment];
}
