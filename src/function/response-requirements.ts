import { FunctionError } from "./error.js";
import { findEntryKey, type FieldBudget } from "./map-entry.js";
import { maxScannedFields, responseField } from "./response-fields.js";
import { WireReader, wireType, type WireRange } from "./wire.js";

/**
 * Whether a response asks for resources or schemas by names that its request does not carry, so
 * that it is not the function's last word. A name is carried also when nothing was found for it.
 * What is no protobuf, or more than is looked at, counts as asked for and not carried.
 */
export function hasUnmetRequirements(
  response: Uint8Array,
  request: Uint8Array,
): boolean {
  try {
    const names = askedFor(response);
    return names.size > 0 && !carriesAll(request, names);
  } catch (thrown) {
    if (thrown instanceof FunctionError && thrown.code === "wire-malformed")
      return true;
    throw thrown;
  }
}

/** Numbers of the fields of Requirements, each with that of the request field that answers it. */
const answeredBy: ReadonlyMap<number, number> = new Map([
  // extra_resources, resources by required_resources, schemas by required_schemas.
  [1, 6],
  [2, 8],
  [3, 9],
]);
const answers: ReadonlySet<number> = new Set(answeredBy.values());

/** The names a response asks for, each with the number of the request field that would have it. */
function askedFor(response: Uint8Array): Set<string> {
  const names = new Set<string>();
  const budget = { fields: maxScannedFields };
  for (const field of bytesFields(response, budget)) {
    if (field.fieldNumber !== responseField.requirements) continue;
    for (const entry of bytesFields(response, budget, field.value())) {
      const answer = answeredBy.get(entry.fieldNumber);
      if (answer === undefined) continue;
      names.add(nameOf(answer, response, entry.value(), budget));
    }
  }
  return names;
}

/** Takes the names that `request` carries out of `names`; whether that is all of them. */
function carriesAll(request: Uint8Array, names: Set<string>): boolean {
  const budget = { fields: maxScannedFields };
  for (const entry of bytesFields(request, budget)) {
    if (!answers.has(entry.fieldNumber)) continue;
    names.delete(nameOf(entry.fieldNumber, request, entry.value(), budget));
    if (names.size === 0) return true;
  }
  return false;
}

/** A map entry's key, as bytes: one that is not UTF-8 is just another one. */
function nameOf(
  answer: number,
  bytes: Uint8Array,
  entry: WireRange,
  budget: FieldBudget,
): string {
  const key = findEntryKey(bytes, entry, budget);
  if (key === undefined) throw tooManyFields();
  const text = Buffer.from(bytes.subarray(key.start, key.end));
  return `${answer}/${text.toString("latin1")}`;
}

/** The fields of wire type `bytes`, in order: the reader itself, which goes on with the next. */
function* bytesFields(
  bytes: Uint8Array,
  budget: FieldBudget,
  range?: WireRange,
): Generator<WireReader, void, undefined> {
  const reader = new WireReader(bytes, range);
  while (reader.next()) {
    if (budget.fields === 0) throw tooManyFields();
    budget.fields -= 1;
    if (reader.wireType === wireType.bytes) yield reader;
  }
}

function tooManyFields(): FunctionError {
  return new FunctionError("wire-malformed", "it has too many fields");
}
