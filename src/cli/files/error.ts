import { WasmFunctionError } from "../../errors.js";

/** Why a file that a command was given is of no use to it. */
export type FileErrorCode =
  /** A file or directory that cannot be read. */
  | "file-unreadable"
  /** A file that is not what it should be: bad YAML, another kind, a missing field. */
  | "file-invalid";

/** Thrown by everything in `src/cli/files/`, and by commands about what is in their files. */
export class FileError extends WasmFunctionError<FileErrorCode> {
  override readonly name = "FileError";
}
