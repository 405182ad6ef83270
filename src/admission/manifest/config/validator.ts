import type { ErrorObject, Options, ValidateFunction } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";

import type { JsonValue } from "../../json.js";
import { summary } from "./failure.js";
import { ownKeywords } from "./own-keywords.js";
import type { ReadSchema } from "./read-schema.js";
import type { Work } from "./work.js";

/**
 * Holds a value to a schema: the {@link summary} of what is wrong, empty when nothing is.
 * @throws Uncheckable
 */
export type Validator = (value: JsonValue) => readonly ErrorObject[];

/** The function of a schema, as ajv's code calls it. */
type Validate = Pick<ValidateFunction, "errors" | "evaluated"> &
  ((value: JsonValue, context?: Parameters<ValidateFunction>[1]) => boolean);

type Evaluated = NonNullable<ValidateFunction["evaluated"]>;

/** Names that are copied in the time of a step. */
const namesPerStep = 8;

/**
 * Has ajv write the code of a schema. A schema that others refer to is a function of its own, which
 * they look up when they call it: in ajv's own way the stack that compiling and checking take is
 * what the schema's author wants it to be.
 */
export function createValidator(schema: ReadSchema, work: Work): Validator {
  const callables = new Map<string, { validate: Validate }>();
  const callableFor = (pointer: string) => {
    const callable = callables.get(pointer) ?? { validate: notCompiled() };
    callables.set(pointer, callable);
    return callable;
  };

  const ajv = createAjv(schema, work);
  for (const keyword of ownKeywords(callableFor, work)) {
    ajv.removeKeyword(keyword.keyword);
    ajv.addKeyword(keyword);
  }
  for (const [pointer, { schema: source, parts }] of schema.functions) {
    const compiled = ajv.compile(source as boolean | object);
    callableFor(pointer).validate = bounded(compiled, parts, work);
  }
  const root = callableFor("");
  return (value) => (root.validate(value) ? [] : (root.validate.errors ?? []));
}

function createAjv({ patterns, tracks }: ReadSchema, work: Work): Ajv2020 {
  /** As ajv knows patterns by their text, they need one: else all of them were the first. */
  const regExp = (source: string) => ({
    test(text: string): boolean {
      const pattern = patterns.get(source);
      return pattern !== undefined && work.matches(pattern, text);
    },
    toString: () => source,
  });
  const ajv = new Ajv2020({
    // What is unknown has been refused. In its strict mode ajv would also look which properties
    // match which patterns, with regular expressions that take for ever.
    strict: false,
    strictNumbers: true,
    logger: false,
    meta: false,
    validateSchema: false,
    validateFormats: false,
    messages: false,
    ownProperties: true,
    multipleOfPrecision: 9,
    // Where it writes a term for each name, compiling takes the square of their number.
    loopRequired: 20,
    // Which takes longer than what it saves.
    code: { optimize: false, regExp: Object.assign(regExp, { code: "" }) },
  } satisfies Options);
  ajv.opts.unevaluated = tracks;
  return ajv;
}

/** A function that others may call: it takes no more stack than there is, and returns little. */
function bounded(
  validate: ValidateFunction,
  parts: number,
  work: Work,
): Validate {
  const call: Validate = (value, context) => {
    work.enter(parts);
    const valid = validate(value, context);
    work.leave(parts);
    if (!valid) call.errors = summary(validate.errors ?? [], value, work);
    else if (validate.evaluated !== undefined)
      call.evaluated = copyOf(validate.evaluated, work);
    return valid;
  };
  return call;
}

/** ajv adds what the caller has judged to what it gets. */
function copyOf(evaluated: Evaluated, work: Work): Evaluated {
  const { props } = evaluated;
  if (typeof props !== "object") return evaluated;
  work.spend(Object.keys(props).length / namesPerStep);
  return { ...evaluated, props: { ...props } };
}

function notCompiled(): Validate {
  return () => {
    throw new Error("a schema is used before it is compiled");
  };
}
