import { _, type Code, type KeywordDefinition, Name } from "ajv";
import { callRef } from "ajv/dist/vocabularies/core/ref.js";

import { isJsonObject, type JsonValue } from "../../json.js";
import { equalItems, isOneOf } from "./equality.js";
import { type Price, priceKeyword } from "./price.js";
import type { Work } from "./work.js";

/** Errors that are copied in the time of a step. */
const errorsPerStep = 256;
/** What ajv's code calls the number of its errors. */
const errorCount = new Name("errors");
/** Of ajv's keywords for values of all types the first that is left. */
const before = "not";

/**
 * The keywords that are ours, or ours in the place of ajv's, in the order in which they are checked.
 * @param callableFor what has the function `validate` of the schema that a `$ref` names
 */
export function ownKeywords(
  callableFor: (pointer: string) => object,
  work: Work,
): readonly (KeywordDefinition & { readonly keyword: string })[] {
  const charge = chargeTo(work);
  const chargeCopies = (errors: number) => work.spend(errors / errorsPerStep);
  return [
    {
      keyword: priceKeyword,
      schemaType: "array",
      before,
      code({ gen, data, schema }) {
        const [once, perMember, perCharacter] = schema as Price;
        const name = gen.scopeValue("keyword", { ref: charge });
        gen.code(_`${name}(${data}, ${once}, ${perMember}, ${perCharacter})`);
      },
    },
    {
      keyword: "const",
      before,
      compile: (value: JsonValue) => isOneOf([value], work),
      errors: false,
      error: withParams((value) => _`{allowedValue: ${value}}`),
    },
    {
      keyword: "enum",
      before,
      compile: (values: readonly JsonValue[]) => isOneOf(values, work),
      errors: false,
      error: withParams((values) => _`{allowedValues: ${values}}`),
    },
    {
      keyword: "$ref",
      schemaType: "string",
      before,
      code(cxt) {
        const { gen } = cxt;
        const ref = callableFor(cxt.schema as string);
        const callable = gen.scopeValue("wrapper", { ref });
        const name = gen.scopeValue("keyword", { ref: chargeCopies });
        // Those of what is called are put to the others in a new list.
        gen.code(_`${name}(${errorCount})`);
        callRef(cxt, _`${callable}.validate`);
      },
    },
    {
      keyword: "uniqueItems",
      type: "array",
      compile: () => (items: readonly JsonValue[]) =>
        equalItems(items, work) === undefined,
      errors: false,
    },
  ];
}

/** What the code of a schema calls first, with its {@link Price}. */
function chargeTo(work: Work) {
  return (
    value: JsonValue,
    once: number,
    perMember: number,
    perCharacter: number,
  ): void => {
    work.spend(once);
    if (perCharacter > 0 && typeof value === "string")
      work.spendChars(perCharacter * value.length);
    if (perMember > 0) work.spend(perMember * membersOf(value));
  };
}

function membersOf(value: JsonValue): number {
  if (Array.isArray(value)) return value.length;
  return isJsonObject(value) ? Object.keys(value).length : 0;
}

function withParams(params: (schema: Code | number | boolean) => Code) {
  return {
    message: "",
    params: ({ schemaCode }: { schemaCode: Code | number | boolean }) =>
      params(schemaCode),
  };
}
