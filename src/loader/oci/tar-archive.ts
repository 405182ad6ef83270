import { quoted } from "../../errors.js";
import type { LoaderError } from "../error.js";
import { ownTurn } from "../turns.js";
import { badArchive } from "./bad-archive.js";
import type { ByteReader } from "./byte-reader.js";
import { nameOf, refuseGlobals } from "./tar-extended.js";
import {
  BLOCK_BYTES,
  isZero,
  parseTarHeader,
  type TarHeader,
} from "./tar-header.js";

/** A file, directory or other thing in an archive. */
export interface TarEntry {
  readonly name: string;
  readonly kind: TarEntryKind;
  /** 0 for everything but a file. */
  readonly sizeBytes: number;
}

type TarEntryKind =
  "file" | "hard link" | "symbolic link" | "device" | "directory" | "FIFO";

/** Types this reads over or takes; any other could have data of any meaning after it. */
const KINDS: ReadonlyMap<string, TarEntryKind> = new Map([
  ["0", "file"],
  ["\0", "file"],
  ["1", "hard link"],
  ["2", "symbolic link"],
  ["3", "device"],
  ["4", "device"],
  ["5", "directory"],
  ["6", "FIFO"],
]);

const MAX_ENTRIES = 1000;
const MAX_EXTENDED_BYTES = 64 * 1024;
/** Of all extended headers: a KB for each entry. Reading them costs more than anything else here. */
const MAX_EXTENDED_BYTES_IN_ALL = 1024 * 1024;

/**
 * Reads an archive's entries in order. Of an entry's data, whoever asks for the next one has read
 * what it wanted with {@link TarArchive.data}; the rest is passed over.
 */
interface TarArchive {
  /**
   * `null` at the end, when there is nothing but zeros up to the end of the stream.
   * @throws LoaderError artifact-invalid
   */
  next(): Promise<TarEntry | null>;
  /** The data of the entry that came last, once. */
  data(): AsyncGenerator<Uint8Array>;
}

/** @param maxDataBytes of one entry */
export function tarArchive(
  reader: ByteReader,
  maxDataBytes: number,
): TarArchive {
  let entries = 0;
  let allExtendedBytes = 0;
  let dataBytes = 0;
  let paddingBytes = 0;

  async function* data() {
    while (dataBytes > 0) {
      const chunk = await reader.takeSome(dataBytes);
      if (chunk === null) throw truncated();
      dataBytes -= chunk.length;
      yield chunk;
    }
  }

  async function passOver() {
    const unread = data();
    while ((await unread.next()).done !== true);
    await takeExactly(reader, paddingBytes);
    paddingBytes = 0;
  }

  /** Of the entry, or of the extended header, that comes next. */
  async function nextHeader(): Promise<TarHeader | null> {
    const block = await takeExactly(reader, BLOCK_BYTES);
    return isZero(block) ? null : parseTarHeader(block);
  }

  async function extendedBytes({ sizeBytes }: TarHeader): Promise<Uint8Array> {
    if (sizeBytes > MAX_EXTENDED_BYTES) {
      throw badArchive(
        `has an extended header of ${sizeBytes} bytes, at most ${MAX_EXTENDED_BYTES} are allowed`,
      );
    }
    allExtendedBytes += sizeBytes;
    if (allExtendedBytes > MAX_EXTENDED_BYTES_IN_ALL) {
      throw badArchive(
        `has extended headers of more than ${MAX_EXTENDED_BYTES_IN_ALL} bytes in all`,
      );
    }
    const bytes = await takeExactly(reader, sizeBytes);
    await takeExactly(reader, paddingOf(sizeBytes));
    await ownTurn();
    return bytes;
  }

  function count() {
    entries += 1;
    if (entries > MAX_ENTRIES)
      throw badArchive(`has more than ${MAX_ENTRIES} entries`);
  }

  async function next(): Promise<TarEntry | null> {
    await passOver();
    /** By typeflag, for the entry that follows. */
    const extended = new Map<string, Uint8Array>();
    for (;;) {
      const header = await nextHeader();
      if (header === null) {
        if (extended.size > 0)
          throw badArchive("ends with an extended header of no entry");
        await readToEnd(reader);
        return null;
      }
      switch (header.typeflag) {
        case "x":
        case "L":
        case "K":
          if (extended.has(header.typeflag))
            throw badArchive("has two extended headers for one entry");
          extended.set(header.typeflag, await extendedBytes(header));
          continue;
        case "g":
          count();
          refuseGlobals(await extendedBytes(header));
          continue;
        default:
      }
      count();
      const entry = entryOf(header, nameOf(header, extended));
      if (entry.sizeBytes > maxDataBytes) {
        throw badArchive(
          `has an entry ${quoted(entry.name)} of ${entry.sizeBytes} bytes, at most ${maxDataBytes} are read`,
        );
      }
      dataBytes = entry.sizeBytes;
      paddingBytes = paddingOf(entry.sizeBytes);
      return entry;
    }
  }

  return { next, data };
}

function entryOf({ typeflag, sizeBytes }: TarHeader, name: string): TarEntry {
  const kind = KINDS.get(typeflag);
  if (kind === undefined) {
    throw badArchive(
      `has an entry ${quoted(name)} of type ${quoted(typeflag)}${typeflag === "S" ? ", a sparse file" : ""}`,
    );
  }
  // Some readers take what follows for its data, others for the next header.
  if (kind !== "file" && sizeBytes > 0)
    throw badArchive(`has a ${kind} ${quoted(name)} with data`);
  return { name, kind, sizeBytes };
}

/** After the first of the two blocks that end an archive. */
async function readToEnd(reader: ByteReader): Promise<void> {
  const second = await takeExactly(reader, BLOCK_BYTES);
  let chunk: Uint8Array | null = second;
  while (chunk !== null) {
    if (!isZero(chunk)) throw badArchive("has other bytes after its end");
    chunk = await reader.takeSome(Infinity);
  }
}

async function takeExactly(
  reader: ByteReader,
  count: number,
): Promise<Uint8Array> {
  const bytes = await reader.take(count);
  if (bytes.length < count) throw truncated();
  return bytes;
}

function paddingOf(sizeBytes: number): number {
  const over = sizeBytes % BLOCK_BYTES;
  return over === 0 ? 0 : BLOCK_BYTES - over;
}

function truncated(): LoaderError {
  return badArchive("is cut short");
}
