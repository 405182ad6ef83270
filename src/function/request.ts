import type { JsonObject } from "@bufbuild/protobuf";

import { FunctionError } from "./error.js";
import { decodeStruct, decodeText } from "./struct.js";
import { WireReader, wireType, type WireRange } from "./wire.js";

/** A RunFunctionRequest of which only the outermost fields have been looked at. */
export interface ScannedRequest {
  readonly bytes: Uint8Array;
  /** `meta.tag`, "" when there is none. */
  readonly tag: string;
  /** Values of `input`, in order; a decoder merges them. */
  readonly input: readonly WireRange[];
  /** Values of `desired`, in order. */
  readonly desired: readonly WireRange[];
  /** Values of `context`, in order. */
  readonly context: readonly WireRange[];
  /** Whole fields, tag included, that carry `credentials`. */
  readonly credentials: readonly WireRange[];
}

/**
 * Finds the parts of a RunFunctionRequest that the host needs; state is not decoded.
 * @throws FunctionError wire-malformed
 */
export function scanRequest(bytes: Uint8Array): ScannedRequest {
  const found = {
    input: [] as WireRange[],
    desired: [] as WireRange[],
    context: [] as WireRange[],
    credentials: [] as WireRange[],
  };
  let tag = "";
  const reader = new WireReader(bytes);
  while (reader.next()) {
    // A decoder skips a credential that is not of wire type bytes; a sloppy one may not.
    if (reader.fieldNumber === requestField.credentials) {
      found.credentials.push({ start: reader.start, end: reader.end });
    }
    if (reader.wireType !== wireType.bytes) continue;
    switch (reader.fieldNumber) {
      case requestField.meta:
        tag = readTag(bytes, reader.value()) ?? tag;
        break;
      case requestField.input:
        found.input.push(reader.value());
        break;
      case requestField.desired:
        found.desired.push(reader.value());
        break;
      case requestField.context:
        found.context.push(reader.value());
        break;
    }
  }
  return { bytes, tag, ...found };
}

/**
 * Decodes the request's Input, all but what is in its `config`, which belongs to the module: that
 * comes out empty.
 * @throws FunctionError input-missing, input-unreadable, wire-malformed
 */
export function readInput(request: ScannedRequest): JsonObject {
  if (request.input.length === 0) {
    throw new FunctionError(
      "input-missing",
      "the step has no input: expected an Input of wasm.fn.crossplane.io/v1 naming a module",
    );
  }
  return decodeStruct(request.bytes, request.input, "config");
}

/**
 * The request as a module may see it: the caller's bytes without the step's credentials, of which
 * none can be granted. Copies only when there is one to remove.
 */
export function withoutCredentials(request: ScannedRequest): Uint8Array {
  const { bytes, credentials } = request;
  if (credentials.length === 0) return bytes;
  const kept: Uint8Array[] = [];
  let keptFrom = 0;
  for (const { start, end } of credentials) {
    kept.push(bytes.subarray(keptFrom, start));
    keptFrom = end;
  }
  kept.push(bytes.subarray(keptFrom));
  return Buffer.concat(kept);
}

/** Numbers of the RunFunctionRequest fields the host reads. */
const requestField = {
  meta: 1,
  desired: 3,
  input: 4,
  context: 5,
  credentials: 7,
} as const;

const metaTagNumber = 1;

function readTag(bytes: Uint8Array, meta: WireRange): string | undefined {
  let tag: string | undefined;
  const reader = new WireReader(bytes, meta);
  while (reader.next()) {
    if (
      reader.fieldNumber === metaTagNumber &&
      reader.wireType === wireType.bytes
    ) {
      tag = decodeText(bytes, reader.value());
    }
  }
  return tag;
}
