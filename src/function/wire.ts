import { FunctionError } from "./error.js";

/** Protobuf's wire types; 6 and 7 do not exist. */
export const wireType = {
  varint: 0,
  fixed64: 1,
  bytes: 2,
  startGroup: 3,
  endGroup: 4,
  fixed32: 5,
} as const;

/** A part of some bytes, end exclusive. */
export interface WireRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Steps through the fields of one message without looking into them: `while (reader.next()) …`.
 *
 * Groups are skipped, however deep, without recursion. What decoders read differently is refused,
 * so that no field is one thing here and another in a guest.
 */
export class WireReader {
  /** The current field. */
  fieldNumber = 0;
  /** One of {@link wireType}, never `endGroup`. */
  wireType = 0;
  /** Where the field's tag starts. */
  start = 0;
  /** Where the next field starts. */
  end = 0;
  /** What is between tag (and length) and end; of a group, what is between its two tags. */
  valueStart = 0;
  valueEnd = 0;

  readonly #bytes: Uint8Array;
  readonly #limit: number;
  #at: number;

  constructor(
    bytes: Uint8Array,
    range: WireRange = { start: 0, end: bytes.length },
  ) {
    this.#bytes = bytes;
    this.#limit = range.end;
    this.#at = range.start;
  }

  /**
   * Moves to the next field; false when there is none.
   * @throws FunctionError wire-malformed
   */
  next(): boolean {
    if (this.#at >= this.#limit) return false;
    this.start = this.#at;
    this.#readTag();
    const { fieldNumber, wireType: type } = this;
    switch (type) {
      case wireType.endGroup:
        throw malformed("a group ends that did not start");
      case wireType.startGroup:
        this.valueStart = this.#at;
        this.valueEnd = this.#skipGroup(fieldNumber);
        break;
      default:
        this.#skipScalar(type);
        this.valueEnd = this.#at;
    }
    this.fieldNumber = fieldNumber;
    this.wireType = type;
    this.end = this.#at;
    return true;
  }

  /** The current field's value as a range. */
  value(): WireRange {
    return { start: this.valueStart, end: this.valueEnd };
  }

  #readTag(): void {
    const tag = this.#readVarint();
    // Some decoders drop the upper half of a longer tag and would see another field.
    if (tag > 0xffff_ffff) throw malformed("a tag exceeds 32 bits");
    this.wireType = tag & 7;
    this.fieldNumber = tag >>> 3;
    if (this.fieldNumber === 0) throw malformed("a field has number 0");
  }

  #skipScalar(type: number): void {
    switch (type) {
      case wireType.varint:
        this.valueStart = this.#at;
        this.#readVarint();
        return;
      case wireType.fixed64:
        return this.#skipBytes(8);
      case wireType.bytes:
        return this.#skipBytes(this.#readVarint());
      case wireType.fixed32:
        return this.#skipBytes(4);
      default:
        throw malformed(`wire type ${type} does not exist`);
    }
  }

  #skipBytes(count: number): void {
    if (count > this.#limit - this.#at) throw malformed("a field is cut off");
    this.valueStart = this.#at;
    this.#at += count;
  }

  /** Returns where the tag that ends the group starts. */
  #skipGroup(groupNumber: number): number {
    const open = [groupNumber];
    for (;;) {
      const tagStart = this.#at;
      this.#readTag();
      const valueStart = this.valueStart;
      if (this.wireType === wireType.startGroup) {
        open.push(this.fieldNumber);
      } else if (this.wireType === wireType.endGroup) {
        if (open.pop() !== this.fieldNumber)
          throw malformed("a group ends as another one");
        if (open.length === 0) return tagStart;
      } else {
        this.#skipScalar(this.wireType);
        this.valueStart = valueStart;
      }
    }
  }

  /** Exact up to 2^53; what is larger stays larger. */
  #readVarint(): number {
    let value = 0;
    let scale = 1;
    for (let length = 1; length <= 10; length++) {
      const byte = this.#at < this.#limit ? this.#bytes[this.#at] : undefined;
      if (byte === undefined) throw malformed("a varint is cut off");
      this.#at++;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (length === 10 && byte > 1)
          throw malformed("a varint exceeds 64 bits");
        return value;
      }
      scale *= 0x80;
    }
    throw malformed("a varint is longer than 10 bytes");
  }
}

/**
 * The values of one field of wire type `bytes`, in order. Decoders skip what has the field's number
 * and another wire type.
 * @throws FunctionError wire-malformed
 */
export function* bytesValues(
  bytes: Uint8Array,
  message: WireRange,
  fieldNumber: number,
): Generator<WireRange, void, undefined> {
  const reader = new WireReader(bytes, message);
  while (reader.next()) {
    if (reader.fieldNumber !== fieldNumber) continue;
    if (reader.wireType === wireType.bytes) yield reader.value();
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Decodes a protobuf `string`.
 * @throws FunctionError wire-malformed when it is not UTF-8
 */
export function decodeText(bytes: Uint8Array, range: WireRange): string {
  try {
    return strictUtf8.decode(bytes.subarray(range.start, range.end));
  } catch (cause) {
    const message = "not a protobuf message: a string is not UTF-8";
    throw new FunctionError("wire-malformed", message, { cause });
  }
}

/** A field of wire type `bytes` on the wire, as one piece. */
export function bytesField(fieldNumber: number, value: Uint8Array): Uint8Array {
  const head = [
    ...varint(fieldNumber * 8 + wireType.bytes),
    ...varint(value.length),
  ];
  // Each byte is set below; and a Uint8Array of its own would take ten times as long.
  const field = Buffer.allocUnsafe(head.length + value.length);
  field.set(head);
  field.set(value, head.length);
  return field;
}

/** A field of wire type `varint` on the wire; `value` is whole, 0 to 2^53-1. */
export function varintField(fieldNumber: number, value: number): Uint8Array {
  return Buffer.from([
    ...varint(fieldNumber * 8 + wireType.varint),
    ...varint(value),
  ]);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  while (value > 0x7f) {
    bytes.push((value & 0x7f) | 0x80);
    value = Math.floor(value / 0x80);
  }
  bytes.push(value);
  return bytes;
}

function malformed(reason: string): FunctionError {
  return new FunctionError(
    "wire-malformed",
    `not a protobuf message: ${reason}`,
  );
}
