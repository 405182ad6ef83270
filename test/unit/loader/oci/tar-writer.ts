/** An entry as it is written, however wrong that is. */
export interface WrittenEntry {
  readonly name: string;
  readonly data?: Uint8Array | string;
  /** Default `0`, a regular file. */
  readonly typeflag?: string;
  readonly linkName?: string;
  /** The twelve bytes of the size field, as Latin-1; default from the data. */
  readonly sizeField?: string;
  /** Eight bytes; default POSIX. */
  readonly magic?: string;
  readonly prefix?: string;
  /** What is added to the right checksum. */
  readonly checksumError?: number;
}

/** The two blocks of zeros that end an archive. */
export const END = Buffer.alloc(1024);

/** A whole archive. */
export function tar(...entries: readonly WrittenEntry[]): Buffer {
  return Buffer.concat([...entries.map(tarEntry), END]);
}

/** A header and its data, padded. */
export function tarEntry(entry: WrittenEntry): Buffer {
  const data = Buffer.from(entry.data ?? "");
  const header = Buffer.alloc(512);
  header.write(entry.name, 0, 100, "utf8");
  header.write("0000644\0", 100, "latin1");
  header.write(entry.sizeField ?? octal(data.length, 11), 124, 12, "latin1");
  header.write(octal(0, 11), 136, "latin1");
  header.write(entry.typeflag ?? "0", 156, 1, "latin1");
  header.write(entry.linkName ?? "", 157, 100, "utf8");
  header.write(entry.magic ?? "ustar\x0000", 257, 8, "latin1");
  header.write(entry.prefix ?? "", 345, 155, "utf8");
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum + (entry.checksumError ?? 0), 6)} `, 148, "latin1");
  const padding = Buffer.alloc((512 - (data.length % 512)) % 512);
  return Buffer.concat([header, data, padding]);
}

/** An extended header for the entry after it. */
export function pax(
  records: Readonly<Record<string, string>>,
  typeflag: "x" | "g" = "x",
): WrittenEntry {
  const data = Object.entries(records).map(([keyword, value]) =>
    paxRecord(keyword, value),
  );
  return { name: "PaxHeaders/fn.wasm", typeflag, data: data.join("") };
}

export function paxRecord(keyword: string, value: string): string {
  const rest = ` ${keyword}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  const length = bytes + String(bytes + String(bytes).length).length;
  return `${length}${rest}`;
}

/** GNU's way to a long name. */
export function gnuLongName(name: string): WrittenEntry {
  return { name: "././@LongLink", typeflag: "L", data: `${name}\0` };
}

function octal(value: number, digits: number): string {
  return `${value.toString(8).padStart(digits, "0")}\0`;
}
