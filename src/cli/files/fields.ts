import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { FileError } from "./error.js";

/** A value of a file, or its absence, with the place that messages name. */
export interface Field {
  readonly value: JsonValue | undefined;
  /** For example `composition.yaml, line 1: spec.pipeline[0].step`. */
  readonly where: string;
}

/** A member of an object; absent when the object is. */
export function member(object: Field, name: string): Field {
  // A file's name may have any of this but a line.
  const separator = /, line \d+: /u.test(object.where) ? "." : ": ";
  const members = optionalObject(object) ?? {};
  return {
    value: Object.hasOwn(members, name) ? members[name] : undefined,
    where: object.where + separator + name,
  };
}

/** A member of a member, and so on. */
export function path(object: Field, ...names: string[]): Field {
  return names.reduce(member, object);
}

/** Nothing counts as an absent one. */
export function optionalObject({ value, where }: Field): JsonObject | null {
  if (value === undefined || value === null) return null;
  if (!isObject(value)) throw unexpected("an object", value, where);
  return value;
}

/** Nothing counts as an empty one. */
export function list({ value, where }: Field): Field[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw unexpected("a list", value, where);
  return value.map((item, i) => ({ value: item, where: `${where}[${i}]` }));
}

/** Text that must be there. */
export function text({ value, where }: Field): string {
  if (typeof value !== "string" || value === "") {
    throw unexpected("text", value, where);
  }
  return value;
}

/** Nothing counts as empty text. */
export function optionalText({ value, where }: Field): string {
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw unexpected("text", value, where);
  return value;
}

/** An object of texts; nothing counts as an empty one. */
export function texts(field: Field): Map<string, string> {
  const names = Object.keys(optionalObject(field) ?? {});
  return new Map(names.map((name) => [name, text0(member(field, name))]));
}

/** Whether a value is an object, not a list or null. */
export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The object, or an empty one where there is something else. */
export function objectOrEmpty(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Text that must be there but may be empty. */
function text0({ value, where }: Field): string {
  if (typeof value !== "string") throw unexpected("text", value, where);
  return value;
}

function unexpected(
  want: string,
  got: JsonValue | undefined,
  where: string,
): FileError {
  return new FileError(
    "file-invalid",
    `${where}: expected ${want}, got ${kindOf(got)}`,
  );
}

function kindOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return "nothing";
  if (value === "") return "empty text";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? "text" : `a ${typeof value}`;
}
