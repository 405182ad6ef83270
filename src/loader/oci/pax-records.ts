import { quoted } from "../../errors.js";
import { badArchive } from "./bad-archive.js";

const BLANK = 0x20;
const NEWLINE = 0x0a;
const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });
/** `length keyword=value`; the length counts itself, the blank and the newline that ends it. */
const LENGTH = /^[1-9][0-9]{0,5}$/u;

/**
 * Reads the records of a pax extended header. A keyword that comes twice is refused.
 * @throws LoaderError artifact-invalid
 */
export function parsePaxRecords(
  bytes: Uint8Array,
): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  for (let start = 0; start < bytes.length;) {
    const blank = bytes.indexOf(BLANK, start);
    if (blank === -1) throw bad();
    const lengthText = UTF8.decode(bytes.subarray(start, blank));
    const end = start + (LENGTH.test(lengthText) ? Number(lengthText) : 0);
    if (end <= blank + 1 || bytes[end - 1] !== NEWLINE) throw bad();
    const record = UTF8.decode(bytes.subarray(blank + 1, end - 1));
    const equals = record.indexOf("=");
    if (equals < 1) throw bad();
    const keyword = record.slice(0, equals);
    if (records.has(keyword))
      throw badArchive(`has ${quoted(keyword)} twice in an extended header`);
    records.set(keyword, record.slice(equals + 1));
    start = end;
  }
  return records;
}

function bad() {
  return badArchive("has an extended header that is not one");
}
