import { create, toBinary } from "@bufbuild/protobuf";

import { RunFunctionResponseSchema, Severity } from "../gen/run_function_pb.js";
import { FunctionError } from "./error.js";
import { describeLargestResources } from "./largest-resources.js";
import type { ScannedRequest } from "./request.js";
import { maxScannedFields, responseField } from "./response-fields.js";
import { hasUnmetRequirements } from "./response-requirements.js";
import {
  bytesField,
  varintField,
  WireReader,
  wireType,
  type WireRange,
} from "./wire.js";

/** What Crossplane can receive: gRPC's default, which it cannot raise. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** What an answer without a `meta` gets one from. */
export interface MetaSource {
  readonly request: ScannedRequest;
  /** Of an answer whose requirements the request meets; another one has none. */
  readonly ttlNanos: bigint;
}

/**
 * A module's answer as the caller gets it: its own bytes, with a `meta` behind them when it has
 * none, and a warning result when there is something to say. The engine has already checked that
 * they are a RunFunctionResponse.
 * @throws FunctionError response-too-large, response-malformed
 */
export function finishResponse(
  bytes: Uint8Array,
  source: MetaSource,
  moduleDescription: string,
  warning: string | null = null,
): Uint8Array {
  const returned = `module ${moduleDescription} returned`;
  try {
    if (bytes.length > maxResponseBytes) {
      throw tooLarge(bytes, returned);
    }
    const found = lookThrough(bytes);
    const answer = found.meta
      ? bytes
      : Buffer.concat([bytes, missingMeta(bytes, found, source)]);
    if (answer.length > maxResponseBytes) throw tooLarge(answer, returned);
    if (warning === null) return answer;
    const result = encodeResult(Severity.WARNING, warning);
    // What is said beside an answer must not cost the answer.
    return answer.length + result.length > maxResponseBytes
      ? answer
      : Buffer.concat([answer, result]);
  } catch (thrown) {
    throw isMalformed(thrown) ? noResponse(thrown, moduleDescription) : thrown;
  }
}

/**
 * A response that ends the pipeline with `message`. Desired state and context are the caller's
 * own bytes, so that nothing is deleted. Only where they would make the answer too large to be
 * received are they left out: Crossplane looks at neither after a fatal result.
 */
export function fatalResponse(
  request: ScannedRequest,
  message: string,
  ttlNanos: bigint,
): Uint8Array {
  const result = encodeResult(Severity.FATAL, message);
  const meta = encodeMeta({ tag: request.tag, ttlNanos });
  const verdict = Buffer.concat([meta, result]);
  const answer = Buffer.concat([verdict, ...copyState(request)]);
  return answer.length > maxResponseBytes ? verdict : answer;
}

/**
 * A response that changes nothing, for a step that runs nothing: desired state and context are the
 * caller's own bytes.
 * @throws FunctionError response-too-large; wire-malformed when what is too large is no message
 */
export function skippedResponse(
  request: ScannedRequest,
  ttlNanos: bigint,
): Uint8Array {
  const meta = encodeMeta({ tag: request.tag, ttlNanos });
  const answer = Buffer.concat([meta, ...copyState(request)]);
  if (answer.length <= maxResponseBytes) return answer;
  throw tooLarge(
    answer,
    "desired state and context, which the step returns unchanged, are",
  );
}

const metaField = { tag: 1, ttl: 2 } as const;
const durationField = { seconds: 1, nanos: 2 } as const;

const nanosPerSecond = 1_000_000_000n;

/** What an answer has. */
interface Found {
  readonly meta: boolean;
  /** Only looked for where there is no meta. */
  readonly requirements: boolean;
}

function lookThrough(bytes: Uint8Array): Found {
  let requirements = false;
  const reader = new WireReader(bytes);
  for (let scanned = 0; reader.next(); scanned += 1) {
    if (reader.wireType === wireType.bytes) {
      if (reader.fieldNumber === responseField.meta)
        return { meta: true, requirements };
      requirements ||= reader.fieldNumber === responseField.requirements;
    }
    if (scanned === maxScannedFields) {
      throw new FunctionError(
        "wire-malformed",
        `it has more than ${maxScannedFields} fields`,
      );
    }
  }
  return { meta: false, requirements };
}

function missingMeta(
  bytes: Uint8Array,
  { requirements }: Found,
  { request, ttlNanos }: MetaSource,
): Uint8Array {
  // Some Crossplanes would keep an answer that was given before its author saw what it asked for.
  const unfinished = requirements && hasUnmetRequirements(bytes, request.bytes);
  return encodeMeta({
    tag: request.tag,
    ttlNanos: unfinished ? 0n : ttlNanos,
  });
}

/** The `meta` of a response. */
interface ResponseMetaValues {
  readonly tag: string;
  /** How long Crossplane may answer an equal request with this response; 0 = not at all. */
  readonly ttlNanos: bigint;
}

/** By hand: on the path of every request the generated encoder takes 20 µs. */
function encodeMeta({ tag, ttlNanos }: ResponseMetaValues): Uint8Array {
  const ttl = Buffer.concat([
    varintField(durationField.seconds, Number(ttlNanos / nanosPerSecond)),
    varintField(durationField.nanos, Number(ttlNanos % nanosPerSecond)),
  ]);
  const meta = Buffer.concat([
    bytesField(metaField.tag, Buffer.from(tag)),
    bytesField(metaField.ttl, ttl),
  ]);
  return bytesField(responseField.meta, meta);
}

/** A response that has one result and nothing else: merged with another it adds to its results. */
function encodeResult(severity: Severity, message: string): Uint8Array {
  return toBinary(
    RunFunctionResponseSchema,
    create(RunFunctionResponseSchema, {
      results: [{ severity, message: shownMessage(message) }],
    }),
  );
}

/** Desired state and context of the request as fields of a response. */
function copyState({ bytes, desired, context }: ScannedRequest): Uint8Array[] {
  const copy = (fieldNumber: number) => (value: WireRange) =>
    bytesField(fieldNumber, bytes.subarray(value.start, value.end));
  return [
    ...desired.map(copy(responseField.desired)),
    ...context.map(copy(responseField.context)),
  ];
}

function isMalformed(thrown: unknown): thrown is FunctionError {
  return thrown instanceof FunctionError && thrown.code === "wire-malformed";
}

function noResponse(
  cause: FunctionError,
  moduleDescription: string,
): FunctionError {
  return new FunctionError(
    "response-malformed",
    `module ${moduleDescription} returned no RunFunctionResponse: ${cause.message}`,
    { cause },
  );
}

/** `lead` and its verb go before the size: `module Path a.wasm returned`. */
function tooLarge(answer: Uint8Array, lead: string): FunctionError {
  const message =
    `${lead} ${answer.length} bytes, ` +
    `more than the ${maxResponseBytes} bytes Crossplane can receive`;
  const largest = describeLargestResources(answer, 3);
  const hint = largest === "" ? "" : `; largest desired resources: ${largest}`;
  return new FunctionError("response-too-large", message + hint);
}

const maxMessageBytes = 4096;

/** One line of valid UTF-8, at most 4 KiB. */
function shownMessage(message: string): string {
  const line = message.replace(/[\p{Cc}\u2028\u2029]+/gu, " ");
  const buffer = new Uint8Array(maxMessageBytes);
  // Never cuts a character in two, and replaces what is no character.
  const { read, written } = new TextEncoder().encodeInto(line, buffer);
  if (read === line.length)
    return new TextDecoder().decode(buffer.subarray(0, written));
  const { written: shorter } = new TextEncoder().encodeInto(
    line,
    buffer.subarray(0, maxMessageBytes - 3),
  );
  return `${new TextDecoder().decode(buffer.subarray(0, shorter))}…`;
}
