import { WasmFunctionError } from "../errors.js";

/**
 * Why a module's bytes could not be found. `docs/errors.md` says what to do about each.
 */
export type LoaderErrorCode =
  /** A source type this version cannot load yet. */
  | "source-not-supported"
  /** A Path source, but the runtime has no --module-dir. */
  | "module-dir-unset"
  /** --module-dir itself cannot be read. */
  | "module-dir-unreadable"
  /** The path is empty, too long, or holds a NUL. */
  | "path-invalid"
  /** The path, or the symbolic link it names, leads out of --module-dir. */
  | "path-outside-module-dir"
  /** No such file. */
  | "module-not-found"
  /** A directory, FIFO, socket or device. */
  | "module-not-regular"
  /** Above --max-module-size. */
  | "module-too-large"
  /** The file has no bytes. */
  | "module-empty"
  /** The operating system refused to open or read the file. */
  | "module-unreadable"
  /** The file was written to while it was being read. */
  | "module-changed"
  /** The caller went away. */
  | "resolve-cancelled";

/** Thrown by everything in `src/loader/`. */
export class LoaderError extends WasmFunctionError<LoaderErrorCode> {
  override readonly name = "LoaderError";
}
