const MAGIC = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);

/** @param windowDescriptor exponent - 10 in the upper five bits; 0x50 = 1 MiB, 0x68 = 8 MiB */
export function zstdFrame(
  blocks: readonly Buffer[],
  windowDescriptor = 0x50,
): Buffer {
  return Buffer.concat([MAGIC, Buffer.from([0, windowDescriptor]), ...blocks]);
}

/** A frame whose window is its content. */
export function singleSegmentFrame(
  contentBytes: number,
  blocks: readonly Buffer[],
): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(contentBytes);
  return Buffer.concat([MAGIC, Buffer.from([0xa0]), size, ...blocks]);
}

export function rawBlock(bytes: Uint8Array, isLast: boolean): Buffer {
  return Buffer.concat([blockHeader(0, bytes.length, isLast), bytes]);
}

export function repeatedBlock(
  byte: number,
  count: number,
  isLast: boolean,
): Buffer {
  return Buffer.concat([blockHeader(1, count, isLast), Buffer.from([byte])]);
}

export function compressedBlock(
  bytes: readonly number[],
  isLast: boolean,
): Buffer {
  return Buffer.concat([
    blockHeader(2, bytes.length, isLast),
    Buffer.from(bytes),
  ]);
}

/** What readers pass over. */
export function skippableFrame(bytes: Uint8Array, nibble = 0): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length);
  return Buffer.concat([
    Buffer.from([0x50 + nibble, 0x2a, 0x4d, 0x18]),
    size,
    bytes,
  ]);
}

/** `bytes` in raw blocks, as no encoder would do it. */
export function storedZstd(bytes: Uint8Array): Buffer {
  const blocks: Buffer[] = [];
  for (let i = 0; i < bytes.length; i += 100_000)
    blocks.push(rawBlock(bytes.subarray(i, i + 100_000), false));
  return zstdFrame([...blocks, rawBlock(new Uint8Array(0), true)]);
}

export function blockHeader(
  type: number,
  size: number,
  isLast: boolean,
): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE((size << 3) | (type << 1) | (isLast ? 1 : 0), 0, 3);
  return header;
}
