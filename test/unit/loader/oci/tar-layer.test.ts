import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { refuse } from "../../../../src/loader/refuse.js";
import { moduleInLayer } from "../../../../src/loader/oci/tar-layer.js";
import { type ChunkSource, chunkSource, collect, pieces } from "./chunks.js";
import {
  END,
  gnuLongName,
  pax,
  paxRecord,
  tar,
  tarEntry,
  type WrittenEntry,
} from "./tar-writer.js";
import { repeatedBlock, storedZstd, zstdFrame } from "./zstd-writer.js";

const MIB = 1024 * 1024;
const MODULE = Buffer.from("\0asm, more or less".repeat(100));
const FN: WrittenEntry = { name: "fn.wasm", data: MODULE };
const OTHER: WrittenEntry = { name: "README", data: "read me" };
const BAD = "the layer's tar archive ";
const NONE =
  "the layer has no module: expected a regular file fn.wasm or ./fn.wasm or /fn.wasm, got ";

describe("loader/oci/tar-layer", () => {
  describe("takes the module from", () => {
    it.each<{ name: string; layer: Buffer }>([
      { name: "fn.wasm", layer: tar(FN) },
      { name: "./fn.wasm", layer: tar({ ...FN, name: "./fn.wasm" }) },
      { name: "/fn.wasm", layer: tar({ ...FN, name: "/fn.wasm" }) },
      {
        name: "between other entries",
        layer: tar(
          { name: "./", typeflag: "5" },
          OTHER,
          { name: "link", typeflag: "2", linkName: "/etc/passwd" },
          FN,
          { name: "d/fn.wasm", data: "other" },
        ),
      },
      { name: "an old archive", layer: tar({ ...FN, magic: "\0".repeat(8) }) },
      { name: "an old type", layer: tar({ ...FN, typeflag: "\0" }) },
      { name: "a GNU archive", layer: tar({ ...FN, magic: "ustar  \0" }) },
      {
        name: "a GNU archive, where the prefix is something else",
        layer: tar({ ...FN, magic: "ustar  \0", prefix: "123" }),
      },
      { name: "a prefix", layer: tar({ ...FN, prefix: "." }) },
      {
        name: "a size with blanks",
        layer: tar({
          ...FN,
          sizeField: `${MODULE.length.toString(8).padStart(11)} `,
        }),
      },
      {
        name: "a pax path",
        layer: tar(pax({ mtime: "1.5", path: "fn.wasm" }), {
          ...FN,
          name: "PaxName",
        }),
      },
      {
        name: "a pax size that is the header's",
        layer: tar(pax({ size: String(MODULE.length) }), FN),
      },
      {
        name: "a GNU long name",
        layer: tar(gnuLongName("./fn.wasm"), { ...FN, name: "cut" }),
      },
      {
        name: "a global header that only comments",
        layer: tar(pax({ comment: "a commit" }, "g"), FN),
      },
      {
        name: "a thousand entries",
        layer: tar(...Array.from({ length: 999 }, () => OTHER), FN),
      },
      {
        name: "GNU's records of 10 KiB",
        layer: Buffer.concat([tar(FN), Buffer.alloc(20 * 512)]),
      },
      { name: "[C27] gzip", layer: gzipSync(tar(FN)) },
      {
        name: "gzip of several members",
        layer: Buffer.concat([
          gzipSync(tarEntry(FN)),
          gzipSync(""),
          gzipSync(END),
        ]),
      },
      { name: "[C26] zstd", layer: storedZstd(tar(FN)) },
    ])("$name", async ({ layer }) => {
      expect(await moduleOf(layer)).toEqual(MODULE);
      expect(await moduleOf(layer, { chunkBytes: oddSize(layer) })).toEqual(
        MODULE,
      );
    });
  });

  describe("[C28] takes nothing of another name for it", () => {
    it.each([
      { name: "../../fn.wasm" },
      { name: "../fn.wasm" },
      { name: ".fn.wasm" },
      { name: "...//fn.wasm" },
      { name: ".//fn.wasm" },
      { name: "//fn.wasm" },
      { name: "./" + "./fn.wasm" },
      { name: "d/../fn.wasm" },
      { name: "fn.wasm/" },
      { name: "fn.wasm/." },
      { name: " fn.wasm" },
      { name: "fn.wasm " },
      { name: "FN.WASM" },
      { name: "fn.wasm.gz" },
      { name: "\u{feff}fn.wasm" },
      { name: "usr/fn.wasm" },
      { name: "\\fn.wasm" },
    ])("$name", async ({ name }) => {
      const result = moduleOf(tar({ ...FN, name }));

      await expect(result).rejects.toMatchObject({
        code: "artifact-invalid",
        message: expect.stringContaining(NONE) as unknown,
      });
    });
  });

  describe("refuses", () => {
    it.each<{ name: string; layer: Buffer; code?: string; want: string }>([
      // C28
      ...["1", "2", "3", "4", "5", "6"].map((typeflag, i) => ({
        name: `[C28] fn.wasm of type ${typeflag}`,
        layer: tar({ name: "fn.wasm", typeflag, linkName: "/etc/passwd" }),
        want: `"fn.wasm" in the layer is a ${["hard link", "symbolic link", "device", "device", "directory", "FIFO"][i] ?? ""}, expected a regular file`,
      })),
      {
        name: "[C28] a symbolic link after the module",
        layer: tar(FN, { name: "./fn.wasm", typeflag: "2", linkName: "/x" }),
        want: 'the layer has more than one module: "fn.wasm" and "./fn.wasm"',
      },
      // C29
      {
        name: "[C29] the same name twice",
        layer: tar(FN, OTHER, { ...FN, data: "hostile" }),
        want: 'the layer has more than one module: "fn.wasm" and "fn.wasm"',
      },
      {
        name: "[C29] a second spelling, by a pax path",
        layer: tar(FN, pax({ path: "/fn.wasm" }), OTHER),
        want: 'the layer has more than one module: "fn.wasm" and "/fn.wasm"',
      },
      // no module
      {
        name: "an empty archive",
        layer: END,
        want: `${NONE}an empty archive`,
      },
      {
        name: "an archive of other things, which it names",
        layer: tar(
          ...["a\u202e", "b", "c", "d", "e", "f", "g"].map((name) => ({
            name,
          })),
        ),
        want: String.raw`${NONE}"a\u202e", "b", "c", "d", "e", 2 more`,
      },
      {
        name: "a pax path that makes the module something else",
        layer: tar(pax({ path: "usr/fn.wasm" }), FN),
        want: `${NONE}"usr/fn.wasm"`,
      },
      {
        name: "a prefix that makes the module something else",
        layer: tar({ ...FN, prefix: "usr" }),
        want: `${NONE}"usr/fn.wasm"`,
      },
      {
        name: "no bytes",
        layer: Buffer.alloc(0),
        want: "the layer has no bytes",
      },
      {
        name: "gzip of no bytes",
        layer: gzipSync(""),
        want: "the layer has no bytes",
      },
      {
        name: "[C27] a bare module",
        layer: MODULE,
        want: "the layer is a bare wasm binary, but its media type says tar archive",
      },
      {
        name: "something else",
        layer: Buffer.from("<html>".repeat(200)),
        want: `${BAD}has a header with a wrong checksum`,
      },
      {
        name: "gzip in gzip",
        layer: gzipSync(gzipSync(tar(FN), { level: 0 })),
        want: `${BAD}has a header with a wrong checksum`,
      },
      // sizes
      {
        name: "an empty module",
        layer: tar({ name: "fn.wasm" }),
        code: "module-empty",
        want: '"fn.wasm" in the layer is empty',
      },
      {
        name: "a module above --max-module-size",
        layer: tar({ name: "fn.wasm", data: Buffer.alloc(MIB + 1) }),
        code: "module-too-large",
        want: '"fn.wasm" in the layer has 1048577 bytes, --max-module-size allows 1048576',
      },
      {
        name: "[C30] a header that claims 8 GiB less a byte",
        layer: tar({ ...OTHER, sizeField: "77777777777\0" }),
        want: `${BAD}has an entry "README" of 8589934591 bytes, at most 8388608 are read`,
      },
      {
        name: "[C30] a size of twelve digits",
        layer: tar({ ...OTHER, sizeField: "777777777777" }),
        want: `${BAD}has an entry "README" of 68719476735 bytes`,
      },
      {
        name: "[C30] a negative size in base-256",
        layer: tar({ ...FN, sizeField: "\xff".repeat(12) }),
        want: `${BAD}has an entry "fn.wasm" whose size is not written in octal`,
      },
      {
        name: "[C30] a huge size in base-256",
        layer: tar({ ...FN, sizeField: `\x80${"\xff".repeat(11)}` }),
        want: `${BAD}has an entry "fn.wasm" whose size is not written in octal`,
      },
      ...[
        "-0000000001\0",
        "00000000008\0",
        "\0".repeat(12),
        "7 7".padEnd(12),
      ].map((sizeField) => ({
        name: `the size ${JSON.stringify(sizeField)}`,
        layer: tar({ ...FN, sizeField }),
        want: `${BAD}has an entry "fn.wasm" whose size is not written in octal`,
      })),
      {
        name: "[C30] a sparse file of GNU's",
        layer: tar({ ...FN, magic: "ustar  \0", typeflag: "S" }),
        want: `${BAD}has an entry "fn.wasm" of type "S", a sparse file`,
      },
      {
        name: "[C30] a sparse file of pax'",
        layer: tar(pax({ "GNU.sparse.major": "1" }), FN),
        want: `${BAD}has a sparse file`,
      },
      ...["7", "D", "M", "V", "X", "A", "!"].map((typeflag) => ({
        name: `an entry of type ${typeflag}`,
        layer: tar({ ...OTHER, typeflag }, FN),
        want: `${BAD}has an entry "README" of type "${typeflag}"`,
      })),
      {
        name: "a directory with data, which may be the next header",
        layer: tar({ name: "d", typeflag: "5", data: tarEntry(FN) }, OTHER),
        want: `${BAD}has a directory "d" with data`,
      },
      // headers
      ...[1, -1].map((checksumError) => ({
        name: `a checksum that is off by ${checksumError}`,
        layer: tar({ ...FN, checksumError }),
        want: `${BAD}has a header with a wrong checksum`,
      })),
      {
        name: "an unknown kind of archive",
        layer: tar({ ...FN, magic: "ustar\x0001" }),
        want: String.raw`${BAD}is of an unknown kind (magic "ustar\u000001")`,
      },
      // extended headers
      {
        name: "a pax size",
        layer: tar(pax({ size: "0" + String(MODULE.length) }), FN),
        want: `${BAD}has another size in an extended header than in its own`,
      },
      {
        name: "a global size",
        layer: tar(pax({ size: "5" }, "g"), FN),
        want: `${BAD}has a size in a global extended header`,
      },
      ...["path", "linkpath"].map((keyword) => ({
        name: `a global ${keyword}`,
        layer: tar(pax({ [keyword]: "fn.wasm" }, "g"), OTHER),
        want: `${BAD}has a ${keyword} in a global extended header`,
      })),
      {
        name: "a path twice",
        layer: tar(
          {
            name: "x",
            typeflag: "x",
            data: paxRecord("path", "a") + paxRecord("path", "fn.wasm"),
          },
          FN,
        ),
        want: `${BAD}has "path" twice in an extended header`,
      },
      {
        name: "two pax headers",
        layer: tar(pax({ path: "a" }), pax({ path: "fn.wasm" }), OTHER),
        want: `${BAD}has two extended headers for one entry`,
      },
      {
        name: "a pax path and a GNU name",
        layer: tar(pax({ path: "a" }), gnuLongName("fn.wasm"), OTHER),
        want: `${BAD}has two extended headers for one entry`,
      },
      {
        name: "an empty path",
        layer: tar(pax({ path: "" }), FN),
        want: `${BAD}has an entry with the name ""`,
      },
      {
        name: "an entry without a name",
        layer: tar({ name: "" }, FN),
        want: `${BAD}has an entry with the name ""`,
      },
      {
        name: "a path with a NUL",
        layer: tar(pax({ path: "fn.wasm\0x" }), OTHER),
        want: String.raw`${BAD}has an entry with the name "fn.wasm\u0000x"`,
      },
      ...[
        "path=fn.wasm\n",
        "99 path=fn.wasm\n",
        "15 path=fn.wasm\n",
        "17 path=fn.wasm\n",
        "016 path=fn.wasm\n",
        "-16 path=fn.wasm\n",
        "16 path=fn.wasm!",
        "9 nokey!\n",
        "5 =a\n",
        "2 ",
        `${paxRecord("path", "a")}x`,
        `${paxRecord("path", "a")} `,
        `${paxRecord("path", "a")}\0\0`,
      ].map((data) => ({
        name: `the extended header ${JSON.stringify(data)}`,
        layer: tar({ name: "x", typeflag: "x", data }, FN),
        want: `${BAD}has an extended header that is not one`,
      })),
      {
        name: "an extended header above 64 KiB",
        layer: tar(pax({ comment: "c".repeat(65_536) }), FN),
        want: `${BAD}has an extended header of 65551 bytes, at most 65536 are allowed`,
      },
      {
        name: "a GNU name above 64 KiB",
        layer: tar(gnuLongName("n".repeat(65_536)), FN),
        want: `${BAD}has an extended header of 65537 bytes`,
      },
      {
        name: "an extended header of no entry",
        layer: tar(FN, pax({ path: "fn.wasm" })),
        want: `${BAD}ends with an extended header of no entry`,
      },
      {
        name: "more than a thousand entries",
        layer: tar(FN, ...Array.from({ length: 1000 }, () => ({ name: "x" }))),
        want: `${BAD}has more than 1000 entries`,
      },
      {
        name: "more than a thousand global headers",
        layer: tar(
          FN,
          ...Array.from({ length: 1000 }, () => pax({ comment: "c" }, "g")),
        ),
        want: `${BAD}has more than 1000 entries`,
      },
      // the end
      {
        name: "no end",
        layer: tarEntry(FN),
        want: `${BAD}is cut short`,
      },
      {
        name: "half an end",
        layer: Buffer.concat([tarEntry(FN), Buffer.alloc(512)]),
        want: `${BAD}is cut short`,
      },
      {
        name: "one block of zeros in between",
        layer: Buffer.concat([
          tarEntry(FN),
          Buffer.alloc(512),
          tarEntry(OTHER),
          END,
        ]),
        want: `${BAD}has other bytes after its end`,
      },
      {
        name: "a second archive",
        layer: Buffer.concat([tar(FN), tar({ ...FN, data: "hostile" })]),
        want: `${BAD}has other bytes after its end`,
      },
      {
        name: "a byte after the end",
        layer: Buffer.concat([tar(FN), Buffer.alloc(5000), Buffer.from("x")]),
        want: `${BAD}has other bytes after its end`,
      },
      // compression
      {
        name: "gzip with a wrong sum",
        layer: withByte(gzipSync(tar(FN)), -5),
        want: "the layer's gzip data is bad: incorrect data check",
      },
      {
        name: "gzip that is cut short",
        layer: gzipSync(tar(FN)).subarray(0, -9),
        want: "the layer's gzip data is bad: unexpected end of file",
      },
      {
        name: "something after gzip",
        layer: Buffer.concat([gzipSync(tar(FN)), Buffer.from("trailing")]),
        want: "the layer's gzip data is bad: incorrect header check",
      },
      {
        name: "the beginning of a member after gzip",
        layer: Buffer.concat([gzipSync(tar(FN)), Buffer.from([0x1f])]),
        want: "the layer's gzip data is bad: unexpected end of file",
      },
      {
        name: "a zero after gzip",
        layer: Buffer.concat([gzipSync(tar(FN)), Buffer.alloc(1)]),
        want: "the layer has other bytes after its gzip data",
      },
      {
        name: "a second archive behind zeros, which Node passes over",
        layer: Buffer.concat([
          gzipSync(tar(FN)),
          Buffer.alloc(3),
          gzipSync(tar(FN)),
        ]),
        want: "the layer has other bytes after its gzip data",
      },
      {
        name: "something after zstd",
        layer: Buffer.concat([storedZstd(tar(FN)), Buffer.from("trailing")]),
        want: "the layer's zstd data is bad: something else follows it",
      },
    ])("$name", async ({ layer, code = "artifact-invalid", want }) => {
      const refusal = {
        name: "LoaderError",
        code,
        message: expect.stringContaining(want) as unknown,
      };

      await expect(moduleOf(layer)).rejects.toMatchObject(refusal);
      await expect(
        moduleOf(layer, { chunkBytes: oddSize(layer) }),
      ).rejects.toMatchObject(refusal);
    });

    it("an archive that is cut short, wherever", async () => {
      const whole = tar(OTHER, pax({ path: "./fn.wasm" }), FN);

      for (let length = 1; length < whole.length; length += 97) {
        await expect(moduleOf(whole.subarray(0, length))).rejects.toThrow(
          `${BAD}is cut short`,
        );
      }
    });
  });

  describe("[C30] stops at the bound on what it expands", () => {
    const bound =
      "the layer expands to more than 8388608 bytes, which is as far as it is read";

    it.each<{ name: string; source: () => Iterable<Uint8Array> }>([
      {
        name: "zeros without end",
        source: () => endless(Buffer.alloc(65_536)),
      },
      {
        name: "entries without end",
        source: () =>
          endless(tarEntry({ ...OTHER, data: Buffer.alloc(65_024) })),
      },
      {
        name: "gzip of zeros without end",
        source: () => endless(gzipSync(Buffer.alloc(MIB))),
      },
      {
        name: "zstd of zeros without end",
        source: function* () {
          yield zstdFrame([]);
          yield* endless(repeatedBlock(0, 131_072, false));
        },
      },
      {
        name: "zeros before the module",
        source: () =>
          pieces(
            gzipSync(
              Buffer.concat([
                tarEntry({ name: "zeros", data: Buffer.alloc(8 * MIB - 1024) }),
                tar(FN),
              ]),
            ),
          ),
      },
    ])("$name", async ({ source }) => {
      const layer = chunkSource(source);

      await expect(moduleFrom(layer)).rejects.toMatchObject({
        code: "artifact-invalid",
        message: bound,
      });

      expect(layer.readBytes()).toBeLessThan(10 * MIB);
      expect(layer.isClosed()).toBe(true);
    });

    it.each([
      { typeflag: "g", count: 17 },
      { typeflag: "x", count: 17 },
      { typeflag: "L", count: 17 },
    ])("of extended headers of type $typeflag, too", async (header) => {
      const { typeflag, count } = header;
      const data = Buffer.from(paxRecord("comment", "c".repeat(65_500)));
      const extended = tarEntry({ name: "h", typeflag, data });
      const each = typeflag === "g" ? [extended] : [extended, tarEntry(OTHER)];
      const archive = (times: number) =>
        Buffer.concat([...Array<Buffer[]>(times).fill(each).flat(), tar(FN)]);

      expect(await moduleOf(archive(count - 2))).toEqual(MODULE);
      await expect(moduleOf(archive(count))).rejects.toThrow(
        `${BAD}has extended headers of more than 1048576 bytes in all`,
      );
    });

    it("which can be another one", async () => {
      const { chunks } = chunkSource(() => pieces(tar(FN)));

      const result = collect(
        moduleInLayer(chunks, { maxModuleBytes: MIB, maxExpandedBytes: 2048 }),
      );

      await expect(result).rejects.toThrow(
        "the layer expands to more than 2048 bytes",
      );
    });

    it("and takes what is just within it", async () => {
      const layer = tar(FN);
      const { chunks } = chunkSource(() => pieces(layer));

      const module = await collect(
        moduleInLayer(chunks, {
          maxModuleBytes: MODULE.length,
          maxExpandedBytes: layer.length,
        }),
      );

      expect(module).toEqual(MODULE);
    });
  });

  describe("reads no faster than it is read", () => {
    it.each([
      { name: "plain", pack: (bytes: Buffer) => bytes },
      { name: "gzip", pack: (bytes: Buffer) => gzipSync(bytes, { level: 0 }) },
      { name: "zstd", pack: storedZstd },
    ])("$name", async ({ pack }) => {
      const bytes = pack(tar({ name: "fn.wasm", data: Buffer.alloc(8 * MIB) }));
      const layer = chunkSource(() => pieces(bytes, 65_536));
      const module = moduleInLayer(layer.chunks, { maxModuleBytes: 8 * MIB });

      await module.next();
      await new Promise((resolve) => setTimeout(resolve, 20));
      const readBytes = layer.readBytes();
      await module.return(undefined);

      expect(readBytes).toBeLessThan(MIB);
      expect(layer.isClosed()).toBe(true);
    });
  });

  it.each([
    { name: "plain", pack: (bytes: Buffer) => bytes },
    { name: "gzip", pack: (bytes: Buffer) => gzipSync(bytes) },
    { name: "zstd", pack: storedZstd },
  ])(
    "throws what the source throws, as it is, while it reads $name",
    async ({ pack }) => {
      const failure = refuse("registry-unreachable", "ghcr.io: gone");
      const layer = chunkSource(function* () {
        yield pack(tar(FN)).subarray(0, -20);
        throw failure;
      });

      await expect(moduleFrom(layer)).rejects.toBe(failure);
    },
  );

  it("reads nothing before it is asked to", async () => {
    const layer = chunkSource(() => [tar(FN)]);

    await moduleInLayer(layer.chunks, { maxModuleBytes: MIB }).return(
      undefined,
    );

    expect(layer.readBytes()).toBe(0);
  });

  it("never throws but a LoaderError, whatever the bytes", async () => {
    const archive = tar(
      pax({ path: "./fn.wasm" }),
      FN,
      gnuLongName("x"),
      OTHER,
    );
    const change = fc.record({
      at: fc.nat(archive.length - 1),
      byte: fc.integer({ min: 0, max: 255 }),
    });
    const changed = fc
      .array(change, { minLength: 1, maxLength: 4 })
      .map((changes) => {
        const bytes = Buffer.from(archive);
        for (const { at, byte } of changes) bytes[at] = byte;
        return bytes;
      });
    const random = fc
      .tuple(
        fc.constantFrom("", "\x1f\x8b\x08", "\x28\xb5\x2f\xfd"),
        fc.uint8Array({ maxLength: 1200 }),
      )
      .map(([magic, bytes]) =>
        Buffer.concat([Buffer.from(magic, "latin1"), bytes]),
      );

    await fc.assert(
      fc.asyncProperty(fc.oneof(changed, random), async (bytes) => {
        for (const layer of [bytes, gzipSync(bytes)]) {
          const result = await moduleOf(layer).catch(
            (thrown: unknown) => thrown,
          );

          if (!Buffer.isBuffer(result)) {
            expect(result).toBeInstanceOf(LoaderError);
            expect(String(result)).toMatch(/^[^\p{C}]{1,800}$/u);
          }
        }
      }),
      { numRuns: 150 },
    );
  });
});

function moduleOf(
  layer: Uint8Array,
  { chunkBytes = 65_536 } = {},
): Promise<Buffer> {
  return moduleFrom(chunkSource(() => pieces(layer, chunkBytes)));
}

/** Chunks that fit nothing, but a few thousand of them at most. */
function oddSize(layer: Uint8Array): number {
  return layer.length < 5000 ? 1 : 997;
}

function moduleFrom({ chunks }: ChunkSource): Promise<Buffer> {
  return collect(moduleInLayer(chunks, { maxModuleBytes: MIB }));
}

function* endless(chunk: Uint8Array): Generator<Uint8Array> {
  for (;;) yield chunk;
}

/** A copy with one byte, counted from the end, changed. */
function withByte(bytes: Buffer, at: number): Buffer {
  const changed = Buffer.from(bytes);
  const index = changed.length + at;
  changed[index] = (changed[index] ?? 0) ^ 1;
  return changed;
}
