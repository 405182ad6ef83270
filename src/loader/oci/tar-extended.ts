import { quoted } from "../../errors.js";
import { badArchive } from "./bad-archive.js";
import { parsePaxRecords } from "./pax-records.js";
import { type TarHeader, textUpToNul } from "./tar-header.js";

/**
 * The name of an entry.
 * @param header its own, which extended headers may overrule
 * @param extended their data by typeflag: `x` is pax', `L` GNU's long name
 * @throws LoaderError artifact-invalid
 */
export function nameOf(
  header: TarHeader,
  extended: ReadonlyMap<string, Uint8Array>,
): string {
  const gnuBytes = extended.get("L");
  const gnuName = gnuBytes === undefined ? null : textUpToNul(gnuBytes);
  const paxName = paxNameOf(header, extended.get("x"));
  if (paxName !== null && gnuName !== null)
    throw badArchive("has two extended headers for one entry");
  const name = paxName ?? gnuName ?? header.name;
  if (name === "" || name.includes("\0"))
    throw badArchive(`has an entry with the name ${quoted(name)}`);
  return name;
}

function paxNameOf(
  header: TarHeader,
  bytes: Uint8Array | undefined,
): string | null {
  if (bytes === undefined) return null;
  const records = parsePaxRecords(bytes);
  refuseSparse(records);
  // A size that a header cannot hold is above all bounds; some writers repeat one that it holds.
  const size = records.get("size");
  if (size !== undefined && size !== String(header.sizeBytes))
    throw badArchive("has another size in an extended header than in its own");
  return records.get("path") ?? null;
}

/**
 * Lets a global extended header pass that says nothing of names and sizes: those would hold for
 * every entry to come, or, with some readers, not.
 * @throws LoaderError artifact-invalid
 */
export function refuseGlobals(bytes: Uint8Array): void {
  const records = parsePaxRecords(bytes);
  refuseSparse(records);
  for (const keyword of ["path", "linkpath", "size"]) {
    if (records.has(keyword))
      throw badArchive(`has a ${keyword} in a global extended header`);
  }
}

/** Their data are not what the file has. */
function refuseSparse(records: ReadonlyMap<string, string>): void {
  for (const keyword of records.keys()) {
    if (keyword.startsWith("GNU.sparse."))
      throw badArchive("has a sparse file");
  }
}
