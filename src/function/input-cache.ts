import { createHash } from "node:crypto";

import { LRUCache } from "lru-cache";

import {
  deepFreeze,
  type AdmittedInput,
  type JsonObject,
  type ModuleManifest,
} from "../admission/index.js";
import { readInput, type ScannedRequest } from "./request.js";

/** A step as its Input describes it; requests share it. */
export interface AdmittedStep {
  /** Frozen. */
  readonly input: AdmittedInput;
  /**
   * Which runs share `limits.concurrency`; "" when the step has none. A request does not say which
   * step it comes from; those of one Input but for its config are one, whatever their XRs choose.
   */
  readonly key: string;
  /** Manifests that the step's `config` has been held to and passed. */
  readonly suits: WeakSet<ModuleManifest>;
}

const maxEntries = 256;
const maxCachedBytes = 8 * 1024 * 1024;
/** Longer ones are known by their digest. */
const maxKeyBytes = 16 * 1024;

/**
 * Reads and admits the Input of requests. A reconcile sends the same bytes again and again, so the
 * last 256 that were admitted, of up to 8 MiB together, are remembered; a refusal never is.
 * @param admit must depend on the Input alone: its ceilings are fixed when the program starts
 */
export function createInputCache(
  admit: (input: JsonObject) => AdmittedInput,
): (request: ScannedRequest) => AdmittedStep {
  const steps = new LRUCache<string, AdmittedStep>({
    max: maxEntries,
    maxSize: maxCachedBytes,
  });
  return (request) => {
    const bytes = inputBytes(request);
    if (bytes === undefined) return readStep(request, admit);
    const key = keyOf(bytes);
    const known = steps.get(key);
    if (known !== undefined) return known;
    const step = readStep(request, admit);
    steps.set(key, step, { size: bytes.length + 1 });
    return step;
  };
}

function readStep(
  request: ScannedRequest,
  admit: (input: JsonObject) => AdmittedInput,
): AdmittedStep {
  const input = deepFreeze(admit(readInput(request)));
  const suits = new WeakSet<ModuleManifest>();
  return Object.freeze({ input, key: keyOfStep(input), suits });
}

/** The Input's bytes; none when they come in several pieces, which nobody sends. */
function inputBytes({ bytes, input }: ScannedRequest): Buffer | undefined {
  const [range] = input;
  if (range === undefined || input.length > 1) return undefined;
  return Buffer.from(
    bytes.buffer,
    bytes.byteOffset + range.start,
    range.end - range.start,
  );
}

function keyOf(bytes: Buffer): string {
  if (bytes.length > maxKeyBytes)
    return `sha256:${createHash("sha256").update(bytes).digest("base64")}`;
  // Latin 1 is one character per byte, whatever the bytes.
  return `bytes:${bytes.toString("latin1")}`;
}

function keyOfStep({ module, limits, compositionPolicy }: AdmittedInput) {
  if (limits.concurrency === null) return "";
  const text = JSON.stringify([module, limits, compositionPolicy]);
  return createHash("sha256").update(text).digest("base64");
}
