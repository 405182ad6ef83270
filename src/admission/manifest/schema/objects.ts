import { quoted } from "../../../errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json.js";
import { fieldNames } from "./canonical.js";
import { fail, type Failure } from "./failure.js";
import {
  entriesIn,
  type Keyword,
  type KeywordUse,
  schemaIn,
  schemaMapIn,
  textsIn,
} from "./keyword.js";
import type { Pattern } from "./pattern.js";
import { type Place, placeOf } from "./place.js";
import type { Run } from "./run.js";
import { type Check, evaluate, type Evaluated } from "./schema.js";

/** `required` */
export const requiredKeyword: Keyword = (use) => {
  const names = textsIn(use);
  return (value, place, run) => {
    if (!isJsonObject(value)) return null;
    const missing = firstMissing(value, names, run);
    if (missing === undefined) return null;
    return fail(place, () => `missing property ${quoted(missing)}`);
  };
};

/** `dependentRequired` */
export const dependentRequiredKeyword: Keyword = (use) => {
  const needs = entriesIn(use).map(({ name, value, pointer }) => ({
    name,
    names: textsIn({ value, pointer }),
  }));
  return (value, place, run) => {
    if (!isJsonObject(value)) return null;
    for (const { name, names } of needs) {
      run.spend(1);
      if (!Object.hasOwn(value, name)) continue;
      const missing = firstMissing(value, names, run);
      if (missing === undefined) continue;
      return fail(
        place,
        () =>
          `missing property ${quoted(missing)}, which ${quoted(name)} needs`,
      );
    }
    return null;
  };
};

/** `propertyNames` */
export const propertyNamesKeyword: Keyword = (use) => {
  const schema = schemaIn(use);
  return (value, place, run) => {
    if (!isJsonObject(value)) return null;
    for (const name of fieldNames(value, run)) {
      const failure = evaluate(schema, name, place, run, null);
      if (failure === null) continue;
      return fail(
        place,
        () => `property name ${quoted(name)}: ${failure.text()}`,
      );
    }
    return null;
  };
};

/** `properties` */
export const propertiesKeyword: Keyword = (use) => {
  const schemas = schemaMapIn(use);
  return (value, place, run, evaluated) => {
    if (!isJsonObject(value)) return null;
    for (const [name, schema] of schemas) {
      run.spend(1);
      if (!Object.hasOwn(value, name)) continue;
      const field = value[name] ?? null;
      const at = placeOf(place, name);
      const failure = evaluate(schema, field, at, run, null);
      if (failure !== null) return failure;
      evaluated?.add(name);
    }
    return null;
  };
};

/** `patternProperties` */
export const patternPropertiesKeyword: Keyword = (use) => {
  const schemas = entriesIn(use).map(({ name, value, pointer }) => ({
    pattern: use.compiler.pattern(name, pointer),
    schema: use.compiler.schema(value, pointer),
  }));
  return (value, place, run, evaluated) => {
    if (!isJsonObject(value)) return null;
    for (const name of fieldNames(value, run)) {
      const field = value[name] ?? null;
      for (const { pattern, schema } of schemas) {
        if (!run.matches(pattern, name)) continue;
        const at = placeOf(place, name);
        const failure = evaluate(schema, field, at, run, null);
        if (failure !== null) return failure;
        evaluated?.add(name);
      }
    }
    return null;
  };
};

/** `additionalProperties`: those that neither `properties` nor `patternProperties` names. */
export const additionalPropertiesKeyword: Keyword = (use) => {
  const { properties, patternProperties } = use.siblings;
  const names = new Set(namesOf(properties));
  const patterns = namesOf(patternProperties).map((name) =>
    use.compiler.pattern(name, `${use.schemaPointer}/patternProperties`),
  );
  return checkOthers(
    use,
    (name, run) => names.has(name) || matchesAny(patterns, name, run),
  );
};

/** `unevaluatedProperties`: those that no other keyword has judged. */
export const unevaluatedPropertiesKeyword: Keyword = (use) =>
  checkOthers(use, (name, _run, evaluated) => evaluated?.has(name) === true);

/** Holds the properties that are not `known` to a schema. */
function checkOthers(
  use: KeywordUse,
  known: (name: string, run: Run, evaluated: Evaluated) => boolean,
): Check {
  const schema = schemaIn(use);
  const forbidden = use.value === false;
  return (value, place, run, evaluated) => {
    if (!isJsonObject(value)) return null;
    for (const name of fieldNames(value, run)) {
      if (known(name, run, evaluated)) continue;
      if (forbidden) return notAllowed(name, place);
      const field = value[name] ?? null;
      const failure = evaluate(schema, field, placeOf(place, name), run, null);
      if (failure !== null) return failure;
      evaluated?.add(name);
    }
    return null;
  };
}

/** At the object, for that is where a misspelt name is to be mended. */
function notAllowed(name: string, place: Place): Failure {
  return fail(
    place,
    () => `additional property ${quoted(name)} is not allowed`,
  );
}

function namesOf(map: JsonValue | undefined): readonly string[] {
  return isJsonObject(map) ? Object.keys(map) : [];
}

function matchesAny(
  patterns: readonly Pattern[],
  name: string,
  run: Run,
): boolean {
  return patterns.some((pattern) => run.matches(pattern, name));
}

function firstMissing(
  object: JsonObject,
  names: readonly string[],
  run: Run,
): string | undefined {
  run.spend(names.length);
  return names.find((name) => !Object.hasOwn(object, name));
}
