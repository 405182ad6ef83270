import { create, toBinary } from "@bufbuild/protobuf";

import { quoted } from "../errors.js";
import { RunFunctionResponseSchema, Severity } from "../gen/run_function_pb.js";
import { FunctionError } from "./error.js";
import type { ScannedRequest } from "./request.js";
import { decodeText } from "./struct.js";
import {
  bytesField,
  varintField,
  WireReader,
  wireType,
  type WireRange,
} from "./wire.js";

/** What Crossplane can receive: gRPC's default, which it cannot raise. */
export const maxResponseBytes = 4 * 1024 * 1024;

/** The `meta` of a response. */
export interface ResponseMetaValues {
  readonly tag: string;
  /** How long Crossplane may answer an equal request with this response; 0 = not at all. */
  readonly ttlNanos: bigint;
}

/**
 * A module's answer as the caller gets it: its own bytes, with a `meta` behind them when it has
 * none. The engine has already checked that they are a RunFunctionResponse.
 * @throws FunctionError response-too-large, response-malformed
 */
export function finishResponse(
  bytes: Uint8Array,
  meta: ResponseMetaValues,
  moduleDescription: string,
): Uint8Array {
  try {
    if (bytes.length > maxResponseBytes) {
      throw tooLarge(bytes, moduleDescription);
    }
    if (hasMeta(bytes)) return bytes;
    const answer = Buffer.concat([bytes, encodeMeta(meta)]);
    if (answer.length <= maxResponseBytes) return answer;
    throw tooLarge(answer, moduleDescription);
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
  const result = toBinary(
    RunFunctionResponseSchema,
    create(RunFunctionResponseSchema, {
      results: [{ severity: Severity.FATAL, message: shownMessage(message) }],
    }),
  );
  const meta = encodeMeta({ tag: request.tag, ttlNanos });
  const verdict = Buffer.concat([meta, result]);
  const state = [
    ...copyFields(request.bytes, request.desired, responseField.desired),
    ...copyFields(request.bytes, request.context, responseField.context),
  ];
  const answer = Buffer.concat([verdict, ...state]);
  return answer.length > maxResponseBytes ? verdict : answer;
}

/** Numbers of the RunFunctionResponse fields the host reads or writes. */
const responseField = { meta: 1, desired: 2, context: 4 } as const;
const metaField = { tag: 1, ttl: 2 } as const;
const durationField = { seconds: 1, nanos: 2 } as const;

const nanosPerSecond = 1_000_000_000n;

const stateResourcesNumber = 2;
const entryKeyNumber = 1;

/**
 * Fields of one answer that are looked at on this thread, which everybody shares: a guest may make
 * millions of two bytes each. An honest answer has a few for each result, and one for each resource.
 */
const maxScannedFields = 100_000;

function hasMeta(bytes: Uint8Array): boolean {
  const reader = new WireReader(bytes);
  for (let scanned = 0; reader.next(); scanned += 1) {
    if (
      reader.fieldNumber === responseField.meta &&
      reader.wireType === wireType.bytes
    ) {
      return true;
    }
    if (scanned === maxScannedFields) {
      throw new FunctionError(
        "wire-malformed",
        `it has more than ${maxScannedFields} fields`,
      );
    }
  }
  return false;
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

function copyFields(
  bytes: Uint8Array,
  values: readonly WireRange[],
  fieldNumber: number,
): Uint8Array[] {
  return values.map(({ start, end }) =>
    bytesField(fieldNumber, bytes.subarray(start, end)),
  );
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

function tooLarge(
  answer: Uint8Array,
  moduleDescription: string,
): FunctionError {
  const largest = largestResources(answer, 3)
    .map(({ name, sizeBytes }) => `${quoted(name, 64)} ${sizeBytes} bytes`)
    .join(", ");
  const message =
    `module ${moduleDescription} returned ${answer.length} bytes, ` +
    `more than the ${maxResponseBytes} bytes Crossplane can receive`;
  const hint = largest === "" ? "" : `; largest desired resources: ${largest}`;
  return new FunctionError("response-too-large", message + hint);
}

interface SizedResource {
  readonly name: string;
  readonly sizeBytes: number;
}

/** Of what the bound on scanned fields lets it see. */
function largestResources(
  response: Uint8Array,
  count: number,
): SizedResource[] {
  let largest: WireRange[] = [];
  let scanned = 0;
  const reader = new WireReader(response);
  while (scanned++ < maxScannedFields && reader.next()) {
    if (
      reader.fieldNumber !== responseField.desired ||
      reader.wireType !== wireType.bytes
    )
      continue;
    const state = new WireReader(response, reader.value());
    while (scanned++ < maxScannedFields && state.next()) {
      if (
        state.fieldNumber !== stateResourcesNumber ||
        state.wireType !== wireType.bytes
      )
        continue;
      const entry = state.value();
      if (sizeOf(entry) <= sizeOf(largest[count - 1])) continue;
      largest = [...largest, entry]
        .sort((a, b) => sizeOf(b) - sizeOf(a))
        .slice(0, count);
    }
  }
  return largest.map((entry) => ({
    name: keyOf(response, entry),
    sizeBytes: sizeOf(entry),
  }));
}

function sizeOf(range: WireRange | undefined): number {
  return range === undefined ? 0 : range.end - range.start;
}

function keyOf(response: Uint8Array, range: WireRange): string {
  let key = "";
  const entry = new WireReader(response, range);
  for (let scanned = 0; scanned < maxScannedFields; scanned += 1) {
    if (!entry.next()) break;
    if (
      entry.fieldNumber === entryKeyNumber &&
      entry.wireType === wireType.bytes
    ) {
      key = decodeText(response, entry.value());
    }
  }
  return key;
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
