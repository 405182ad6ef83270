import { quoted } from "../../../errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";
import { nearestName } from "../../nearest.js";
import { fail } from "./failure.js";
import {
  type Compiler,
  type KeywordUse,
  refused,
  unexpected,
} from "./keyword.js";
import { keywords, refusedKeywords } from "./keywords.js";
import { createPatterns } from "./pattern.js";
import type { Schema } from "./schema.js";

const dialect = "https://json-schema.org/draft/2020-12/schema";

/** Every schema is known by its pointer, so one long name would be kept many times. */
const maxPointerChars = 1024;
const tooLong = `its JSON pointer is longer than ${String(maxPointerChars)} characters`;

/** A schema as a whole. */
export interface CompiledSchema {
  readonly root: Schema;
  /** Whether a keyword asks what the others have judged. */
  readonly tracks: boolean;
}

/**
 * Compiles a JSON Schema of draft 2020-12 without what a module's config has no use for: other
 * documents, anchors and dynamic references. An unknown keyword is refused, so that a misspelt one
 * does not silently check nothing.
 * @throws AdmissionError input-invalid
 */
export function compileSchema(schema: JsonValue): CompiledSchema {
  const schemas = new Map<string, Schema>();
  const unresolved: (() => void)[] = [];
  const patterns = createPatterns();
  let tracks = false;

  const compiler: Compiler = {
    schema(value, pointer) {
      const known = schemas.get(pointer);
      if (known !== undefined) return known;
      if (pointer.length > maxPointerChars) throw refused(pointer, tooLong);
      const compiled: Schema = { checks: [] };
      schemas.set(pointer, compiled);
      addChecks(compiled, value, pointer, compiler);
      tracks ||= tracksEvaluated(value);
      return compiled;
    },
    reference(ref, pointer) {
      let target: Schema = never;
      unresolved.push(() => {
        const named = schemas.get(pointerOf(ref, pointer));
        if (named === undefined)
          throw refused(pointer, `there is no schema at ${quoted(ref)}`);
        target = named;
      });
      return () => target;
    },
    pattern(source, pointer) {
      const pattern = patterns.compile(source);
      if (pattern.kind === "error") throw refused(pointer, pattern.message);
      return pattern.value;
    },
  };

  const root = compiler.schema(schema, "");
  for (const resolve of unresolved) resolve();
  return { root, tracks };
}

/** `false` as a schema. */
const never: Schema = {
  checks: [(_value, place) => fail(place, () => "no value is allowed here")],
};

function addChecks(
  { checks }: Schema,
  value: JsonValue,
  schemaPointer: string,
  compiler: Compiler,
): void {
  if (value === true) return;
  if (value === false) {
    checks.push(...never.checks);
    return;
  }
  if (!isJsonObject(value))
    throw unexpected({ value, pointer: schemaPointer }, "a schema");
  refuseUnknown(value, schemaPointer);
  for (const [name, keyword] of keywords) {
    const use = useOf(value, name, schemaPointer, compiler);
    const check = use === undefined ? null : keyword(use);
    if (check !== null) checks.push(check);
  }
}

function useOf(
  siblings: JsonObject,
  name: string,
  schemaPointer: string,
  compiler: Compiler,
): KeywordUse | undefined {
  const value = siblings[name];
  if (value === undefined) return undefined;
  const pointer = `${schemaPointer}/${name}`;
  return { value, pointer, siblings, schemaPointer, compiler };
}

function refuseUnknown(schema: JsonObject, pointer: string): void {
  for (const [name, value] of Object.entries(schema)) {
    if (keywords.has(name)) continue;
    if (name === "$schema" || name === "$id")
      refuseForeign(name, value, pointer);
    else throw refused(pointer, unknownText(name));
  }
}

/** Below the root they would change what every `$ref` and every keyword means. */
function refuseForeign(name: string, value: JsonValue, pointer: string): void {
  if (pointer !== "")
    throw refused(pointer, `${name} is supported at the root only`);
  const at = { value, pointer: `/${name}` };
  if (typeof value !== "string") throw unexpected(at, "a string");
  if (name === "$schema" && value !== dialect && value !== `${dialect}#`)
    throw unexpected(at, quoted(dialect));
}

function unknownText(name: string): string {
  const advice = refusedKeywords.get(name);
  if (advice !== undefined)
    return `keyword ${quoted(name)} is not supported: ${advice}`;
  const nearest = nearestName(name, [...keywords.keys()]);
  const hint = nearest === undefined ? "" : `, did you mean ${quoted(nearest)}`;
  return `unknown keyword ${quoted(name)}${hint}`;
}

/** The JSON pointer in a `$ref` to a place in the same schema. */
function pointerOf(ref: string, pointer: string): string {
  const target = /^#(?<fragment>(?:\/.*)?)$/su.exec(ref)?.groups?.["fragment"];
  try {
    if (target !== undefined) return decodeURIComponent(target);
  } catch {
    // No percent encoding: no reference either.
  }
  throw unexpected(
    { value: ref, pointer },
    'a place in this schema, such as "#/$defs/name"',
  );
}

function tracksEvaluated(value: JsonValue): boolean {
  return (
    isJsonObject(value) &&
    ["unevaluatedItems", "unevaluatedProperties"].some((name) =>
      Object.hasOwn(value, name),
    )
  );
}
