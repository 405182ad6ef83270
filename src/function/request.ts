import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { escaped } from "../errors.js";
import { FunctionError } from "./error.js";
import { addPiece } from "./pieces.js";
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
  /** `meta.tag`, of 64 KiB at most; "" when there is none. */
  readonly tag: string;
  /** Of the tag the first 128 characters, escaped: a log has it in every line. */
  readonly logTag: string;
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

/** Whole fields that carry a credential. */
export const maxCredentialFields = 4_096;

/** The caller's tag comes back in `meta` of every answer. */
export const maxTagBytes = 64 * 1024;

/**
 * Finds the parts of a RunFunctionRequest that the host needs; state is not decoded.
 * @throws FunctionError wire-malformed, also when a field is there more often than anybody means
 */
export function scanRequest(bytes: Uint8Array): ScannedRequest {
  const found = {
    meta: [] as WireRange[],
    observed: [] as WireRange[],
    input: [] as WireRange[],
    desired: [] as WireRange[],
    context: [] as WireRange[],
  };
  const credentials: WireRange[] = [];
  const reader = new WireReader(bytes);
  while (reader.next()) {
    // A decoder skips a credential that is not of wire type bytes; a sloppy one may not.
    if (reader.fieldNumber === credentialsNumber) {
      const field = { start: reader.start, end: reader.end };
      addPiece(credentials, field, "credentials", maxCredentialFields);
    }
    if (reader.wireType !== wireType.bytes) continue;
    const name = messageAt(reader.fieldNumber);
    if (name !== undefined) addPiece(found[name], reader.value(), name);
  }
  const { meta, ...parts } = found;
  const tag = readTag(bytes, meta);
  return { bytes, tag, logTag: escaped(tag, 128), ...parts, credentials };
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
    maxValues: maxInputValues,
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
    maxValues: maxConfigValues,
  });
  return config ?? undefined;
}

const configKey = "config";

/** Objects and lists that a value of the Input may lie in, outside its config. */
const maxInputDepth = 32;

/** Values of the Input, outside its config: a field it does not know costs as much as any other. */
const maxInputValues = 4_096;

/** The same two for its config, where authors put whole manifests. */
const maxConfigDepth = 128;
const maxConfigValues = 100_000;

const credentialsNumber = 7;
const metaTagNumber = 1;

type MessageName = "meta" | "observed" | "desired" | "input" | "context";

/** The message fields of a RunFunctionRequest that the host reads, by their numbers. */
function messageAt(fieldNumber: number): MessageName | undefined {
  switch (fieldNumber) {
    case 1:
      return "meta";
    case 2:
      return "observed";
    case 3:
      return "desired";
    case 4:
      return "input";
    case 5:
      return "context";
    default:
      return undefined;
  }
}

function readTag(bytes: Uint8Array, meta: readonly WireRange[]): string {
  let tag: WireRange = { start: 0, end: 0 };
  for (const piece of meta) {
    for (const value of bytesValues(bytes, piece, metaTagNumber)) tag = value;
  }
  const size = tag.end - tag.start;
  if (size <= maxTagBytes) return decodeText(bytes, tag);
  throw new FunctionError(
    "wire-malformed",
    `meta.tag has ${size} bytes, more than the ${maxTagBytes} bytes it may have`,
  );
}
