import { LRUCache } from "lru-cache";

import type { AdmittedInput, JsonObject } from "../admission/index.js";
import { readInput, type ScannedRequest } from "./request.js";

/** A step as its Input describes it; frozen, for requests share it. */
export interface AdmittedStep {
  readonly input: AdmittedInput;
  /** As `stepKey` of a run: which runs share `limits.concurrency`. */
  readonly key: string;
}

const maxEntries = 256;
const maxCachedBytes = 16 * 1024;

/**
 * Reads and admits the Input of requests. A reconcile sends the same bytes again and again, so the
 * last 256 that were admitted, of up to 16 KiB each, are remembered; a refusal never is.
 * @param admit must depend on the Input alone: its ceilings are fixed when the program starts
 */
export function createInputCache(
  admit: (input: JsonObject) => AdmittedInput,
): (request: ScannedRequest) => AdmittedStep {
  const steps = new LRUCache<string, AdmittedStep>({ max: maxEntries });
  return (request) => {
    const cacheKey = cacheKeyOf(request);
    const known = cacheKey === undefined ? undefined : steps.get(cacheKey);
    if (known !== undefined) return known;
    const input = deepFreeze(admit(readInput(request)));
    const step = Object.freeze({ input, key: stepKey(input) });
    if (cacheKey !== undefined) steps.set(cacheKey, step);
    return step;
  };
}

/** The Input's bytes; none when there are too many, or in several pieces, which nobody sends. */
function cacheKeyOf({ bytes, input }: ScannedRequest): string | undefined {
  const [range] = input;
  if (range === undefined || input.length > 1) return undefined;
  const length = range.end - range.start;
  if (length > maxCachedBytes) return undefined;
  // Latin 1 is one character per byte, whatever the bytes.
  const view = Buffer.from(
    bytes.buffer,
    bytes.byteOffset + range.start,
    length,
  );
  return view.toString("latin1");
}

/** A request does not say which step it comes from; those of one module and equal limits are one. */
function stepKey(input: AdmittedInput): string {
  if (input.limits.concurrency === null) return "";
  return JSON.stringify([input.source, input.limits]);
}

function deepFreeze<T extends object>(value: T): T {
  for (const part of Object.values(value) as unknown[]) {
    if (typeof part === "object" && part !== null) deepFreeze(part);
  }
  return Object.freeze(value);
}
