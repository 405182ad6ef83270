import fc from "fast-check";
import * as zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { byteReader } from "../../../../../src/loader/oci/byte-reader.js";
import { LoaderError } from "../../../../../src/loader/error.js";
import { unzstd } from "../../../../../src/loader/oci/zstd/unzstd.js";
import { chunkSource, collect, pieces } from "../chunks.js";
import {
  blockHeader,
  compressedBlock,
  rawBlock,
  repeatedBlock,
  singleSegmentFrame,
  skippableFrame,
  zstdFrame,
} from "../zstd-writer.js";
import { lines, mixed } from "./contents.js";
import { REFERENCE_FRAMES } from "./reference-frames.js";

const MIB = 1024 * 1024;
const HELLO = zstdFrame([rawBlock(Buffer.from("hello"), true)]);

describe("loader/oci/zstd/unzstd", () => {
  describe("reads what the reference encoder makes", () => {
    it.each(REFERENCE_FRAMES)("$name ($made)", async ({ content, base64 }) => {
      const bytes = Buffer.from(base64, "base64");

      expect((await expanded(bytes)).equals(content)).toBe(true);
      expect((await expanded(bytes, 1)).equals(content)).toBe(true);
    });

    const compress: unknown = Reflect.get(zlib, "zstdCompressSync");
    it.runIf(typeof compress === "function")(
      "as Node makes it, of contents of every kind",
      async () => {
        if (typeof compress !== "function") return;
        const contents = [lines(12_000), mixed(), Buffer.alloc(0), noise()];
        for (const content of contents) {
          const bytes: unknown = Reflect.apply(compress, zlib, [content]);
          if (!Buffer.isBuffer(bytes)) throw new Error("expected a buffer");

          expect((await expanded(bytes)).equals(content)).toBe(true);
        }
      },
    );
  });

  describe("reads by the letter of RFC 8878", () => {
    it.each([
      {
        name: "several frames, with others between that mean nothing",
        bytes: [
          skippableFrame(Buffer.from("before"), 15),
          HELLO,
          skippableFrame(Buffer.alloc(0)),
          HELLO,
        ],
        want: "hellohello",
      },
      {
        name: "blocks of one byte and empty ones",
        bytes: [
          zstdFrame([
            repeatedBlock(97, 3, false),
            rawBlock(Buffer.alloc(0), false),
            repeatedBlock(98, 2, true),
          ]),
        ],
        want: "aaabb",
      },
      {
        name: "a window of 8 MiB",
        bytes: [zstdFrame([rawBlock(Buffer.from("x"), true)], 0x68)],
        want: "x",
      },
      {
        name: "a frame that says its size",
        bytes: [singleSegmentFrame(2, [rawBlock(Buffer.from("ab"), true)])],
        want: "ab",
      },
      {
        name: "literals of one byte and tables of one code: a match that runs into itself",
        // 3 × "a"; then 3 literals, offset value 1 (the last offset, 1), 3 bytes
        bytes: [
          zstdFrame([compressedBlock([0x19, 97, 1, 0x54, 3, 0, 0, 1], true)]),
        ],
        want: "aaaaaa",
      },
      {
        name: "an offset that is used again without literals: the second last",
        // 5 literals: "abcde"; then no literals, offset value 1 (now the second last: 4), 3 bytes
        bytes: [
          zstdFrame([
            rawBlock(Buffer.from("vwxyz"), false),
            compressedBlock([0, 1, 0x54, 0, 0, 0, 1], true),
          ]),
        ],
        want: "vwxyzwxy",
      },
    ])("$name", async ({ bytes, want }) => {
      expect(String(await expanded(Buffer.concat(bytes)))).toBe(want);
    });
  });

  it("keeps no more than a window, and all of it", async () => {
    // 16 MiB of blocks of 128 KiB through a window of 1 MiB, then a match from its far end.
    const blocks = Array.from({ length: 128 }, (_, i) =>
      repeatedBlock(i, 131_072, false),
    );
    // Offset code 20: value 2^20 + the bits, 3 more than the offset.
    const match = (extra: number) => {
      const bits = (1n << 20n) | BigInt(extra);
      const stream = [bits & 255n, (bits >> 8n) & 255n, bits >> 16n].map(
        Number,
      );
      return compressedBlock([0, 1, 0x54, 0, 20, 0, ...stream], true);
    };

    const atTheEnd = await expanded(zstdFrame([...blocks, match(3)]));
    const beyond = expanded(zstdFrame([...blocks, match(4)])).then(
      ({ length }) => length,
    );

    expect([...atTheEnd.subarray(-3)]).toEqual([120, 120, 120]);
    expect(atTheEnd.length).toBe(16 * MIB + 3);
    await expect(beyond).rejects.toThrow("a match lies too far back");
  });

  describe("[C26] refuses", () => {
    it.each([
      {
        name: "a window of 2 GiB",
        bytes: zstdFrame([rawBlock(Buffer.from("x"), true)], 21 << 3),
        want: "its window has 2147483648 bytes, at most 8388608 are allowed",
      },
      {
        name: "a window just above 8 MiB",
        bytes: zstdFrame([rawBlock(Buffer.from("x"), true)], 0x69),
        want: "its window has 9437184 bytes",
      },
      {
        name: "a window of 2 TiB, which overflows 32 bits",
        bytes: zstdFrame([rawBlock(Buffer.from("x"), true)], 31 << 3),
        want: "its window has 2199023255552 bytes",
      },
      {
        name: "a content of 4 GiB that is its own window",
        bytes: singleSegmentFrame(0xffffffff, [repeatedBlock(0, 9, true)]),
        want: "its window has 4294967295 bytes",
      },
      {
        name: "the second frame's window",
        bytes: Buffer.concat([HELLO, zstdFrame([], 0x70)]),
        want: "its window has 16777216 bytes",
      },
      {
        name: "a dictionary",
        bytes: Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1, 0x50, 7, 1, 0, 0]),
        want: "it needs the dictionary 7, there are none",
      },
      {
        name: "a reserved bit",
        bytes: Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 8, 0x50, 1, 0, 0]),
        want: "a reserved bit is set",
      },
      {
        name: "a reserved block type",
        bytes: zstdFrame([blockHeader(3, 0, true)]),
        want: "a block is of a reserved type",
      },
      {
        name: "a block above 128 KiB",
        bytes: zstdFrame([repeatedBlock(0, 131_073, true)]),
        want: "a block is too long",
      },
      {
        name: "a block above the window",
        bytes: singleSegmentFrame(5, [repeatedBlock(0, 6, true)]),
        want: "a block is too long",
      },
      {
        name: "a content that is not as long as it says",
        bytes: singleSegmentFrame(6, [rawBlock(Buffer.from("hello"), true)]),
        want: "a frame has 5 bytes and claims 6",
      },
      {
        name: "what is no frame after a frame",
        bytes: Buffer.concat([HELLO, Buffer.from("trailing")]),
        want: "something else follows it",
      },
      {
        name: "zeros after a frame",
        bytes: Buffer.concat([HELLO, Buffer.alloc(8)]),
        want: "something else follows it",
      },
      {
        name: "a match before the frame",
        bytes: zstdFrame([compressedBlock([0, 1, 0x54, 0, 0, 0, 1], true)]),
        want: "a match lies too far back",
      },
      {
        name: "a match into the frame before",
        bytes: Buffer.concat([
          HELLO,
          zstdFrame([compressedBlock([0, 1, 0x54, 0, 0, 0, 1], true)]),
        ]),
        want: "a match lies too far back",
      },
      {
        name: "a match with no offset",
        // No literals and offset value 3: the last offset, 1, less 1.
        bytes: zstdFrame([
          rawBlock(Buffer.from("hello"), false),
          compressedBlock([0, 1, 0x54, 0, 1, 0, 3], true),
        ]),
        want: "a match has no offset",
      },
      {
        name: "a tree of an earlier block that there is not",
        bytes: zstdFrame([compressedBlock([0x13, 0x40, 0, 1, 0], true)]),
        want: "a block reuses no Huffman tree",
      },
      {
        name: "a table of an earlier block that there is not",
        bytes: zstdFrame([compressedBlock([0, 1, 0xfc, 1], true)]),
        want: "a block reuses no table",
      },
      {
        name: "bits after the last sequence",
        bytes: zstdFrame([
          compressedBlock([0x19, 97, 1, 0x54, 3, 0, 0, 2], true),
        ]),
        want: "sequences do not fill their stream",
      },
      {
        name: "bytes after the last sequence",
        bytes: zstdFrame([compressedBlock([0, 0, 7], true)]),
        want: "a block has more bytes than it needs",
      },
    ])("$name", async ({ bytes, want }) => {
      await expect(expanded(bytes)).rejects.toMatchObject({
        code: "artifact-invalid",
        message: expect.stringContaining(
          `the layer's zstd data is bad: ${want}`,
        ) as unknown,
      });
    });

    it("what is cut short, wherever", async () => {
      const whole = singleSegmentFrame(300, [
        rawBlock(Buffer.alloc(150), false),
        compressedBlock([0x19, 97, 1, 0x54, 3, 0, 0, 1], false),
        repeatedBlock(1, 144, true),
      ]);

      for (let length = 1; length < whole.length; length += 1) {
        await expect(expanded(whole.subarray(0, length))).rejects.toThrow(
          "it is cut short",
        );
      }
    });

    it("a window before it reads on or makes room for it", async () => {
      const source = chunkSource(function* () {
        yield Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 31 << 3]);
        throw new Error("read on");
      });

      const result = collect(unzstd(byteReader(source.chunks), MIB));

      await expect(result).rejects.toThrow("its window has");
    });

    it("blocks without end that make nothing", async () => {
      const source = chunkSource(function* () {
        yield zstdFrame([]);
        for (;;) yield rawBlock(Buffer.alloc(0), false);
      });

      const result = collect(unzstd(byteReader(source.chunks), MIB));

      await expect(result).rejects.toThrow("it has more than 1128 blocks");
    });

    // Each of these keeps a decoder that does not count busy for minutes, or for ever.
    it("weights whose states need no bits", async () => {
      const table = [0xf0, 0x03];
      const weights = [4, ...table, 0xff, 0xff];
      const literals = [0xa2, 0, 2, ...weights, 0, 0, 0];

      const result = expanded(
        zstdFrame([compressedBlock([...literals, 0, 0, 0], true)]),
      );

      await expect(result).rejects.toThrow(
        "a Huffman tree has too many weights",
      );
    });

    it("a hundred thousand sequences of the longest lengths from nothing", async () => {
      const sequences = [255, 0xff, 0xff, 0x54, 35, 0, 52, 0xff, 0xff, 0xff];

      const result = expanded(
        zstdFrame([compressedBlock([0, ...sequences], true)]),
      );

      await expect(result).rejects.toThrow(
        "a sequence asks for more than there is",
      );
    });
  });

  it("lets others have their turn while it works", async () => {
    let turns = 0;
    const timer = setInterval(() => (turns += 1), 0);
    const blocks = Array.from({ length: 200 }, () =>
      repeatedBlock(0, 131_072, false),
    );

    await expanded(zstdFrame([...blocks, repeatedBlock(0, 1, true)]));
    clearInterval(timer);

    expect(turns).toBeGreaterThan(0);
  });

  it("keeps others waiting for one block, however many frames it expands at once", async () => {
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const blocks = Array.from({ length: 20 }, () =>
      repeatedBlock(0, 131_072, false),
    );
    const frame = zstdFrame([...blocks, repeatedBlock(0, 1, true)]);

    await Promise.all(Array.from({ length: 10 }, () => expanded(frame)));
    isOver = true;

    expect(turns).toBeGreaterThan(10 * 20);
  });

  it("never throws but a LoaderError, whatever is done to a frame", async () => {
    const frames = REFERENCE_FRAMES.slice(0, 4).map(({ base64 }) => base64);
    const change = fc.record({
      at: fc.nat(1000),
      byte: fc.integer({ min: 0, max: 255 }),
    });

    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...frames),
        fc.array(change, { minLength: 1, maxLength: 3 }),
        async (base64, changes) => {
          const bytes = Buffer.from(base64, "base64");
          for (const { at, byte } of changes) bytes[4 + (at % 900)] = byte;

          const error = await expanded(bytes).catch(
            (thrown: unknown) => thrown,
          );

          if (!Buffer.isBuffer(error))
            expect(error).toBeInstanceOf(LoaderError);
        },
      ),
      { numRuns: 200 },
    );
  });
});

function expanded(bytes: Uint8Array, chunkBytes?: number): Promise<Buffer> {
  const { chunks } = chunkSource(() => pieces(bytes, chunkBytes));
  return collect(unzstd(byteReader(chunks), 64 * MIB));
}

/** What does not compress. */
function noise(): Buffer {
  let state = 1;
  return Buffer.from(
    Array.from({ length: 200_000 }, () => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return state >>> 24;
    }),
  );
}
