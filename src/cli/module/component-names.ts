import type { FileHandle } from "node:fs/promises";

/** The names at the top of a component, each list in the component's order. */
export interface ComponentNames {
  readonly imports: readonly string[];
  readonly exports: readonly string[];
}

const PREAMBLE = Buffer.from([0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0]);
const IMPORT_SECTION = 10;
const EXPORT_SECTION = 11;
/** An id and the length of what follows, which is at most 5 bytes long. */
const SECTION_HEAD_BYTES = 6;
/** What a component may define at most, nested ones included, and then some. */
const MAX_SECTIONS = 200_000;
/** They go into a manifest that registries take up to 4 MiB of. */
const MAX_NAMES_BYTES = 1024 * 1024;

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Reads the names that a component imports and exports out of its own sections, as wasmparser 0.254
 * does; those of nested components are left out. The engine must have accepted the bytes: whatever
 * it would not is an error without many words.
 * @param sizeBytes of the file
 * @throws Error, also for more than 1 MiB of names
 */
export async function readComponentNames(
  file: FileHandle,
  sizeBytes: number,
): Promise<ComponentNames> {
  const names = { imports: [] as string[], exports: [] as string[] };
  const preamble = await readAt(file, 0, PREAMBLE.length);
  if (!preamble.equals(PREAMBLE)) throw broken("its preamble");
  let sections = 0;
  let namesBytes = 0;
  for (let offset = PREAMBLE.length; offset < sizeBytes;) {
    sections += 1;
    if (sections > MAX_SECTIONS) throw broken("its number of sections");
    const length = Math.min(SECTION_HEAD_BYTES, sizeBytes - offset);
    const head = cursor(await readAt(file, offset, length));
    const id = head.byte();
    const contentBytes = head.u32();
    const start = offset + head.position();
    offset = start + contentBytes;
    if (offset > sizeBytes) throw broken("the length of a section");
    if (id !== IMPORT_SECTION && id !== EXPORT_SECTION) continue;

    namesBytes += contentBytes;
    if (namesBytes > MAX_NAMES_BYTES) throw broken("the length of its names");
    const content = cursor(await readAt(file, start, contentBytes));
    const isImport = id === IMPORT_SECTION;
    const list = isImport ? names.imports : names.exports;
    for (let left = content.u32(); left > 0; left--) {
      list.push(readName(content));
      if (isImport) skipType(content);
      else skipExported(content);
    }
    if (!content.isAtEnd()) throw broken("what follows its names");
  }
  return names;
}

type Cursor = ReturnType<typeof cursor>;

/** Reads bytes one after the other, and no further than they go. */
function cursor(bytes: Buffer) {
  let at = 0;
  const take = (count: number): Buffer => {
    if (count > bytes.length - at) throw broken("an end that comes too soon");
    at += count;
    return bytes.subarray(at - count, at);
  };
  const byte = (): number => take(1).readUInt8();
  return {
    byte,
    take,
    /** Unsigned LEB128. */
    u32(): number {
      let value = 0;
      for (let shift = 0; shift < 35; shift += 7) {
        const part = byte();
        value += (part & 0x7f) * 2 ** shift;
        if (part < 0x80 && value < 2 ** 32) return value;
      }
      throw broken("a number");
    },
    position: () => at,
    isAtEnd: () => at === bytes.length,
  };
}

function readName(content: Cursor): string {
  // Older tools write 1 for the name of an interface.
  if (content.byte() > 1) throw broken("the kind of a name");
  return strictUtf8.decode(content.take(content.u32()));
}

/** The sort and index of what is exported, and the type it may be given. */
function skipExported(content: Cursor): void {
  skipSort(content);
  content.u32();
  const hasType = content.byte();
  if (hasType > 1) throw broken("the type of an export");
  if (hasType === 1) skipType(content);
}

function skipType(content: Cursor): void {
  const sort = skipSort(content);
  // A type is bound by another one, or is a resource by itself.
  if (sort === TYPE && content.byte() === 1) return;
  content.u32();
}

const CORE = 0;
const CORE_MODULE = 0x11;
const VALUE = 2;
const TYPE = 3;
const INSTANCE = 5;

function skipSort(content: Cursor): number {
  const sort = content.byte();
  const isKnown =
    sort === CORE ? content.byte() === CORE_MODULE : sort <= INSTANCE;
  // Values are part of no runtime yet.
  if (!isKnown || sort === VALUE) throw broken("the kind of a definition");
  return sort;
}

async function readAt(
  file: FileHandle,
  offset: number,
  length: number,
): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(
      buffer,
      filled,
      length - filled,
      offset + filled,
    );
    if (bytesRead === 0) throw broken("an end that comes too soon");
    filled += bytesRead;
  }
  return buffer;
}

function broken(what: string): Error {
  return new Error(`cannot read the names of a component: ${what}`);
}
