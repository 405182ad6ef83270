import type { JsonValue } from "../../json.js";
import type { Failure } from "./failure.js";
import type { Place } from "./place.js";
import type { Run } from "./run.js";

/**
 * Field names and indexes of one value that a keyword has judged; null when nobody asks.
 * `unevaluatedProperties` and `unevaluatedItems` apply to the others.
 */
export type Evaluated = Set<string | number> | null;

/** One keyword of a schema: what is wrong with a value, or null. */
export type Check = (
  value: JsonValue,
  place: Place,
  run: Run,
  evaluated: Evaluated,
) => Failure | null;

/** A schema, compiled: the checks are in the order in which they are made. */
export interface Schema {
  readonly checks: Check[];
}

/**
 * Holds a value to a schema.
 * @param evaluated gets what the schema evaluates of the value, when it matches
 * @throws WorkExceeded
 */
export function evaluate(
  schema: Schema,
  value: JsonValue,
  place: Place,
  run: Run,
  evaluated: Evaluated,
): Failure | null {
  run.enter();
  const own: Evaluated = run.tracks ? new Set() : null;
  for (const check of schema.checks) {
    run.spend(1);
    const failure = check(value, place, run, own);
    if (failure !== null) {
      run.leave();
      return failure;
    }
  }
  run.leave();
  if (own !== null && evaluated !== null) {
    run.spend(own.size);
    for (const key of own) evaluated.add(key);
  }
  return null;
}
