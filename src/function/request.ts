import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { FunctionError } from "./error.js";
import { decodeStruct, decodeValue } from "./struct.js";
import { findValue } from "./struct-path.js";
import {
  bytesValues,
  decodeText,
  WireReader,
  wireType,
  type WireRange,
} from "./wire.js";

/** A RunFunctionRequest of which only the outermost fields have been looked at. */
export interface ScannedRequest {
  readonly bytes: Uint8Array;
  /** `meta.tag`, "" when there is none. */
  readonly tag: string;
  /** Values of `observed`, in order; a decoder merges them. */
  readonly observed: readonly WireRange[];
  /** Values of `input`, in order. */
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
    observed: [] as WireRange[],
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
      case requestField.observed:
        found.observed.push(reader.value());
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
  return decodeStruct(request.bytes, request.input, {
    subject: "the Input",
    maxDepth: maxInputDepth,
    opaqueKey: configKey,
  });
}

/**
 * Decodes what {@link readInput} leaves out: the Input's `config`; undefined when it is absent or
 * null.
 * @throws FunctionError input-unreadable, wire-malformed
 */
export function readConfig(request: ScannedRequest): JsonValue | undefined {
  const { bytes, input } = request;
  const lookup = findValue(bytes, input, [configKey]);
  if (lookup.kind === "missing") return undefined;
  const config = decodeValue(bytes, lookup.pieces, {
    subject: "the Input's config",
    maxDepth: maxConfigDepth,
  });
  return config ?? undefined;
}

const configKey = "config";

/** Objects and lists that a value of the Input may lie in, outside its config. */
const maxInputDepth = 32;

/** The same for its config, where authors put whole manifests. */
const maxConfigDepth = 128;

/** Numbers of the RunFunctionRequest fields the host reads. */
const requestField = {
  meta: 1,
  observed: 2,
  desired: 3,
  input: 4,
  context: 5,
  credentials: 7,
} as const;

const metaTagNumber = 1;

function readTag(bytes: Uint8Array, meta: WireRange): string | undefined {
  let tag: string | undefined;
  for (const value of bytesValues(bytes, meta, metaTagNumber))
    tag = decodeText(bytes, value);
  return tag;
}
