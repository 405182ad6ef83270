import { quoted } from "../../../errors.js";
import { ownField } from "../../fields.js";
import { isJsonObject, type JsonValue } from "../../json.js";
import {
  refused,
  type SchemaPlace,
  type SchemaReader,
  unexpected,
} from "./keyword.js";
import { keywords } from "./keywords.js";
import { emptyObject } from "./ordered.js";
import { createPatterns, type Pattern } from "./pattern.js";
import { priceKeyword, priceOf } from "./price.js";
import { pointerOf, survey } from "./references.js";
import { refuseUnknownKeyword } from "./unknown-keyword.js";

/** A schema that is compiled to a function of its own. */
export interface SchemaFunction {
  /** Only the keywords that check, each with what ajv may see; a `$ref` has a JSON pointer. */
  readonly schema: JsonValue;
  /** How many schemas, keywords and names there are in it. */
  readonly parts: number;
}

/** A schema as ajv compiles it. */
export interface ReadSchema {
  /** By JSON pointer: the root, and the schemas that a `$ref` names. */
  readonly functions: ReadonlyMap<string, SchemaFunction>;
  /** By what they are in the schema. */
  readonly patterns: ReadonlyMap<string, Pattern>;
  /** Whether a keyword asks what the others have judged. */
  readonly tracks: boolean;
}

/** Schemas, keywords and names; compiling so many takes up to 100 ms. */
const maxParts = 1000;
/** Compiling takes stack for every level. */
const maxLevels = 32;
/** The code of every check has the pointer in it. */
const maxPointerChars = 1024;

const somePlace = 'a place in this schema, such as "#/$defs/name"';
const tooMany = `the schema has more than ${maxParts} schemas, keywords and names`;
const tooDeep = `it is in more than ${maxLevels} other schemas`;
const tooLong = `its JSON pointer is longer than ${maxPointerChars} characters`;

/**
 * Reads a JSON Schema of draft 2020-12 without what a module's config has no use for: other
 * documents, anchors and dynamic references.
 *
 * ajv's strict mode is no substitute: it knows more keywords, it bounds nothing, and it runs the
 * schema's patterns as regular expressions of JavaScript.
 * @throws AdmissionError input-invalid
 */
export function readSchema(schema: JsonValue): ReadSchema {
  const { targets, tracks } = survey(schema);
  const functions = new Map<string, SchemaFunction>();
  const patterns = new Map<string, Pattern>();
  const patternCompiler = createPatterns();
  const pointers = new Set<string>();
  const references: { ref: string; target: string; pointer: string }[] = [];
  let parts = 0;

  const reader: SchemaReader = {
    schema(value, place) {
      refuseTooFar(place);
      pointers.add(place.pointer);
      if (!targets.has(place.pointer)) return checksOf(value, place);
      addFunction(value, place);
      const call = emptyObject();
      call["$ref"] = place.pointer;
      return priced(call, place, 0);
    },
    reference(ref, pointer) {
      const target = pointerOf(ref);
      if (target === undefined)
        throw unexpected({ value: ref, pointer }, somePlace);
      references.push({ ref, target, pointer });
      return target;
    },
    pattern(source, pointer) {
      const pattern = patternCompiler.compile(source);
      if (pattern.kind === "error") throw refused(pointer, pattern.message);
      patterns.set(source, pattern.value);
    },
    count(more, { pointer, body }) {
      parts += more;
      body.parts += more;
      if (parts > maxParts) throw refused(pointer, tooMany);
    },
  };

  /** The code of a schema is made once, however many ways lead to it. */
  function addFunction(value: JsonValue, place: SchemaPlace): void {
    const body = { parts: 0 };
    const checks = checksOf(value, { ...place, openNames: 0, body });
    functions.set(place.pointer, { schema: checks, parts: body.parts });
  }

  function checksOf(value: JsonValue, place: SchemaPlace): JsonValue {
    reader.count(1, place);
    if (typeof value === "boolean") return value;
    const { pointer, body } = place;
    if (!isJsonObject(value)) throw unexpected({ value, pointer }, "a schema");
    refuseUnknownKeyword(value, pointer);
    const before = body.parts;
    const checks = emptyObject();
    for (const [name, keyword] of keywords) {
      const own = ownField(value, name);
      if (own === undefined) continue;
      const at = `${pointer}/${name}`;
      const check = keyword({ value: own, pointer: at, place, reader });
      if (check === undefined) continue;
      reader.count(1, place);
      checks[name] = check;
    }
    return priced(checks, place, body.parts - before);
  }

  function priced(
    checks: Record<string, JsonValue>,
    { openNames }: SchemaPlace,
    partsBelow: number,
  ): JsonValue {
    if (Object.keys(checks).length === 0) return true;
    const tracked = tracks ? partsBelow : null;
    checks[priceKeyword] = priceOf(checks, openNames, tracked);
    return checks;
  }

  reader.schema(schema, rootPlace());
  for (const { ref, target, pointer } of references)
    if (!pointers.has(target))
      throw refused(pointer, `there is no schema at ${quoted(ref)}`);
  return { functions, patterns, tracks };
}

function rootPlace(): SchemaPlace {
  return { pointer: "", level: 0, openNames: 0, body: { parts: 0 } };
}

function refuseTooFar({ pointer, level }: SchemaPlace): void {
  if (pointer.length > maxPointerChars) throw refused(pointer, tooLong);
  if (level > maxLevels) throw refused(pointer, tooDeep);
}
