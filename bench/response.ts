import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** What is read of a RunFunctionResponse. */
export interface ResponseSummary {
  /** `meta.tag`; empty without one. */
  readonly tag: string;
  /** Bytes of the `desired` State; `null` without one. */
  readonly desired: Uint8Array | null;
  /** Message of the first fatal result; `null` without one. */
  readonly fatal: string | null;
}

const SEVERITY_FATAL = 1;

/** Message of the first fatal result of a RunFunctionResponse; `null` without one. */
export function fatalIn(bytes: Uint8Array): string | null {
  return readResponse(bytes).fatal;
}

/**
 * Reads the few fields that tests and benchmarks look at.
 * @throws RangeError or Error on bytes that are no protobuf
 */
export function readResponse(bytes: Uint8Array): ResponseSummary {
  const results = submessages(bytes, 3).map(readResult);
  const meta = submessages(bytes, 1).at(-1);
  return {
    tag: meta === undefined ? "" : string(submessages(meta, 1).at(-1)),
    desired: submessages(bytes, 2).at(-1) ?? null,
    fatal:
      results.find(({ severity }) => severity === SEVERITY_FATAL)?.message ??
      null,
  };
}

function readResult(bytes: Uint8Array): { severity: number; message: string } {
  const reader = new BinaryReader(bytes);
  let severity = 0;
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1 && wireType === WireType.Varint) severity = reader.int32();
    else reader.skip(wireType, field);
  }
  return { severity, message: string(submessages(bytes, 2).at(-1)) };
}

/** The payloads of every length-delimited occurrence of `wanted`, in order. */
function submessages(bytes: Uint8Array, wanted: number): Uint8Array[] {
  const found: Uint8Array[] = [];
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === wanted && wireType === WireType.LengthDelimited)
      found.push(reader.bytes());
    else reader.skip(wireType, field);
  }
  return found;
}

function string(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : Buffer.from(bytes).toString("utf8");
}
