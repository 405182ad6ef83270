import { isJsonObject, type JsonValue } from "../../json.js";
import { deepest, fail, type Failure, failureText } from "./failure.js";
import {
  type Keyword,
  type KeywordUse,
  schemaIn,
  schemaMapIn,
  schemasIn,
  textIn,
} from "./keyword.js";
import type { Place } from "./place.js";
import { evaluate, type Schema } from "./schema.js";

/** `$ref` */
export const refKeyword: Keyword = (use) => {
  const target = use.compiler.reference(textIn(use), use.pointer);
  return (value, place, run, evaluated) =>
    evaluate(target(), value, place, run, evaluated);
};

/** `allOf` */
export const allOfKeyword: Keyword = (use) => {
  const schemas = schemasIn(use);
  return (value, place, run, evaluated) => {
    for (const schema of schemas) {
      const failure = evaluate(schema, value, place, run, evaluated);
      if (failure !== null) return failure;
    }
    return null;
  };
};

/** `anyOf` */
export const anyOfKeyword: Keyword = (use) => {
  const schemas = schemasIn(use);
  return (value, place, run, evaluated) => {
    const failures: Failure[] = [];
    for (const schema of schemas) {
      const failure = evaluate(schema, value, place, run, evaluated);
      if (failure !== null) failures.push(failure);
      // The others count only for what they evaluate.
      else if (evaluated === null) return null;
    }
    return failures.length < schemas.length
      ? null
      : noneMatches("anyOf", place, failures);
  };
};

/** `oneOf` */
export const oneOfKeyword: Keyword = (use) => {
  const schemas = schemasIn(use);
  return (value, place, run, evaluated) => {
    const failures: Failure[] = [];
    let matching: number | undefined;
    for (const [index, schema] of schemas.entries()) {
      const failure = evaluate(schema, value, place, run, evaluated);
      if (failure !== null) failures.push(failure);
      else if (matching === undefined) matching = index;
      else {
        const pair = `${String(matching)} and ${String(index)}`;
        return fail(place, () => `schemas ${pair} of oneOf both match`);
      }
    }
    return matching === undefined
      ? noneMatches("oneOf", place, failures)
      : null;
  };
};

/** `not` */
export const notKeyword: Keyword = (use) => {
  const schema = schemaIn(use);
  return (value, place, run) =>
    evaluate(schema, value, place, run, null) === null
      ? fail(place, () => "matches the schema of not")
      : null;
};

/** `if`, with `then` and `else`. */
export const ifKeyword: Keyword = (use) => {
  const condition = schemaIn(use);
  const then = siblingSchema(use, "then");
  const otherwise = siblingSchema(use, "else");
  return (value, place, run, evaluated) => {
    const met = evaluate(condition, value, place, run, evaluated) === null;
    const next = met ? then : otherwise;
    return next === undefined
      ? null
      : evaluate(next, value, place, run, evaluated);
  };
};

/** `then` or `else`: `if` applies them. */
export const branchKeyword: Keyword = (use) => {
  schemaIn(use);
  return null;
};

/** `dependentSchemas` */
export const dependentSchemasKeyword: Keyword = (use) => {
  const schemas = schemaMapIn(use);
  return (value, place, run, evaluated) => {
    if (!isJsonObject(value)) return null;
    for (const [name, schema] of schemas) {
      run.spend(1);
      if (!Object.hasOwn(value, name)) continue;
      const failure = evaluate(schema, value, place, run, evaluated);
      if (failure !== null) return failure;
    }
    return null;
  };
};

/** `$defs`: only `$ref` leads there. */
export const definitionsKeyword: Keyword = (use) => {
  schemaMapIn(use);
  return null;
};

function siblingSchema(
  { siblings, schemaPointer, compiler }: KeywordUse,
  name: string,
): Schema | undefined {
  const value: JsonValue | undefined = siblings[name];
  return value === undefined
    ? undefined
    : compiler.schema(value, `${schemaPointer}/${name}`);
}

function noneMatches(
  keyword: string,
  place: Place,
  failures: readonly Failure[],
): Failure {
  const closest = deepest(failures);
  return fail(place, () => {
    const why = closest === undefined ? "" : `: ${failureText(closest)}`;
    return `no schema of ${keyword} matches${why}`;
  });
}
