import { randomBytes } from "node:crypto";
import {
  closeSync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { errnoOf } from "../../errors.js";
import { temporaryName } from "./temporary-file.js";
import { READ_UNFOLLOWED } from "../open-flags.js";

const FILE_NAME = "salt";
const SALT_BYTES = 32;

/**
 * The 32 random bytes in `<directory>/salt`, made when there are none. Processes that start at once
 * agree on them. A damaged file is replaced. Throws what the operating system says.
 */
export function openSalt(directory: string): Buffer {
  const filePath = path.join(directory, FILE_NAME);
  const present = readSalt(filePath);
  if (present.kind === "ok") return present.salt;
  if (present.kind === "damaged") rmSync(filePath, { force: true });
  makeSalt(directory, filePath);
  const made = readSalt(filePath);
  if (made.kind === "ok") return made.salt;
  throw new Error(`the salt is ${made.kind} although it was just made`);
}

type ReadSalt =
  | { readonly kind: "ok"; readonly salt: Buffer }
  | { readonly kind: "absent" | "damaged" };

function readSalt(filePath: string): ReadSalt {
  let file: number;
  try {
    file = openSync(filePath, READ_UNFOLLOWED);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === "ENOENT") return { kind: "absent" };
    if (errno === "ELOOP") return { kind: "damaged" };
    throw error;
  }
  try {
    if (!fstatSync(file).isFile()) return { kind: "damaged" };
    const buffer = Buffer.alloc(SALT_BYTES + 1);
    const bytesRead = readSync(file, buffer);
    if (bytesRead !== SALT_BYTES) return { kind: "damaged" };
    return { kind: "ok", salt: buffer.subarray(0, SALT_BYTES) };
  } finally {
    closeSync(file);
  }
}

/** Linking fails when there is one, so the first process wins and nobody sees half of one. */
function makeSalt(directory: string, filePath: string): void {
  const temporaryPath = path.join(directory, temporaryName());
  try {
    const file = openSync(temporaryPath, "wx", 0o600);
    try {
      // All of them, or it throws: a disk that is full takes what it has room for.
      writeFileSync(file, randomBytes(SALT_BYTES));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    linkSync(temporaryPath, filePath);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
  } finally {
    rmSync(temporaryPath, { force: true });
  }
}
