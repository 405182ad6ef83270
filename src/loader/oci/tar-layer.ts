import { quoted } from "../../errors.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import { type ByteReader, byteReader, rest } from "./byte-reader.js";
import { gunzip } from "./gunzip.js";
import { tarArchive, type TarEntry } from "./tar-archive.js";
import { isZstd, unzstd } from "./zstd/unzstd.js";

/** The only spellings of the module's name; nothing is cut off or cleaned up to get at one. */
const MODULE_NAMES: readonly string[] = ["fn.wasm", "./fn.wasm", "/fn.wasm"];
const MAX_NAMES_SHOWN = 5;

/**
 * The bytes of the one module in a layer: a regular file `fn.wasm`, `./fn.wasm` or `/fn.wasm` of a
 * tar archive that is plain or compressed by gzip or zstd, which its first bytes tell and not its
 * media type. The archive may hold other files, but no second module and nothing else of that name.
 *
 * The module is good when the generator has come to its end and not before: what is wrong with the
 * layer may come after it. Closing the generator closes `chunks`.
 * @param options.maxExpandedBytes of the archive, compressed or not; default 8 × `maxModuleBytes`
 * @throws LoaderError artifact-invalid, module-too-large, module-empty; and what `chunks` throws
 */
export async function* moduleInLayer(
  chunks: AsyncIterable<Uint8Array>,
  options: {
    readonly maxModuleBytes: number;
    readonly maxExpandedBytes?: number;
  },
): AsyncGenerator<Uint8Array> {
  const { maxModuleBytes } = options;
  const maxExpandedBytes = options.maxExpandedBytes ?? 8 * maxModuleBytes;
  const delivered = byteReader(chunks);
  const expanded = byteReader(expand(delivered, maxExpandedBytes));
  try {
    yield* moduleIn(expanded, maxModuleBytes, maxExpandedBytes);
  } finally {
    await expanded.close();
    await delivered.close();
  }
}

async function* moduleIn(
  expanded: ByteReader,
  maxModuleBytes: number,
  maxExpandedBytes: number,
): AsyncGenerator<Uint8Array> {
  await refuseWhatIsNoTar(expanded);
  const archive = tarArchive(expanded, maxExpandedBytes);
  const names: string[] = [];
  let found: TarEntry | null = null;
  for (;;) {
    const entry = await archive.next();
    if (entry === null) break;
    if (!MODULE_NAMES.includes(entry.name)) {
      names.push(entry.name);
      continue;
    }
    if (found !== null) throw secondModule(found, entry);
    found = entry;
    checkModule(found, maxModuleBytes);
    yield* archive.data();
  }
  if (found === null) throw noModule(names);
}

/** Without this, all that could be said of other bytes is that a checksum is wrong. */
async function refuseWhatIsNoTar(expanded: ByteReader): Promise<void> {
  const block = await expanded.peek(512);
  if (block.length === 0)
    throw refuse("artifact-invalid", "the layer has no bytes");
  if (Buffer.from(block.subarray(0, 4)).toString("latin1") === "\0asm") {
    throw refuse(
      "artifact-invalid",
      "the layer is a bare wasm binary, but its media type says tar archive",
    );
  }
}

function checkModule(entry: TarEntry, maxModuleBytes: number): void {
  const name = quoted(entry.name);
  if (entry.kind !== "file") {
    throw refuse(
      "artifact-invalid",
      `${name} in the layer is a ${entry.kind}, expected a regular file`,
    );
  }
  if (entry.sizeBytes === 0)
    throw refuse("module-empty", `${name} in the layer is empty`);
  if (entry.sizeBytes > maxModuleBytes) {
    throw refuse(
      "module-too-large",
      `${name} in the layer has ${entry.sizeBytes} bytes, --max-module-size allows ${maxModuleBytes}`,
    );
  }
}

function secondModule(first: TarEntry, second: TarEntry): LoaderError {
  return refuse(
    "artifact-invalid",
    `the layer has more than one module: ${quoted(first.name)} and ${quoted(second.name)}`,
  );
}

function noModule(names: readonly string[]): LoaderError {
  const shown = names.slice(0, MAX_NAMES_SHOWN).map((name) => quoted(name, 60));
  const others = names.length - shown.length;
  const got = [...shown, ...(others > 0 ? [`${others} more`] : [])].join(", ");
  return refuse(
    "artifact-invalid",
    `the layer has no module: expected a regular file ${MODULE_NAMES.join(" or ")}, got ${got === "" ? "an empty archive" : got}`,
  );
}

async function* expand(
  delivered: ByteReader,
  maxExpandedBytes: number,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of decompressed(delivered, maxExpandedBytes)) {
    bytes += chunk.length;
    if (bytes > maxExpandedBytes) {
      throw refuse(
        "artifact-invalid",
        `the layer expands to more than ${maxExpandedBytes} bytes, which is as far as it is read`,
      );
    }
    yield chunk;
  }
}

async function* decompressed(
  delivered: ByteReader,
  maxExpandedBytes: number,
): AsyncGenerator<Uint8Array> {
  const head = await delivered.peek(4);
  if (head[0] === 0x1f && head[1] === 0x8b) yield* gunzip(rest(delivered));
  else if (isZstd(head)) yield* unzstd(delivered, maxExpandedBytes);
  else yield* rest(delivered);
}
