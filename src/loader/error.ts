import { WasmFunctionError } from "../errors.js";

/**
 * Why a module's bytes could not be found. `docs/errors.md` says what to do about each.
 */
export type LoaderErrorCode =
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
  | "resolve-cancelled"
  /** The request's deadline came while its module was being found or fetched, which goes on. */
  | "still-resolving"
  /** No answer: DNS, connection, time-out, reset, or a status 408, 429 or 5xx. The only one that caches make up for. */
  | "registry-unreachable"
  /** The server's certificate does not verify. */
  | "tls-failed"
  /** http to a host that is neither loopback nor in --insecure-registry. */
  | "plain-http-refused"
  /** Too many redirects, or one to where none may lead. */
  | "redirect-refused"
  /** Any other status, such as 400, 405 or 410. */
  | "registry-refused"
  /** The registry wants a credential, or another one. */
  | "registry-auth-failed"
  /** The registry sends for tokens to a host that is none of its own. */
  | "token-realm-refused"
  /** A pull credential or the Docker config cannot be used as it is. */
  | "pull-credential-invalid"
  /** The step does not have the credential that its module is to be pulled with. */
  | "pull-credential-missing"
  /** An answer above its bound. */
  | "answer-too-large"
  /** An answer that is not what the protocol says. */
  | "answer-invalid"
  /** Bytes that are not those of the digest asked for. */
  | "digest-mismatch"
  /** A tag leads to another manifest than expectedDigest. */
  | "expected-digest-mismatch"
  /** What the reference leads to holds no module this runtime can take. */
  | "artifact-invalid"
  /** The module is here, but nothing proves that this request could have pulled it. */
  | "access-unproven"
  /** Nothing on this machine can be written. */
  | "cache-unwritable";

/** Thrown by everything in `src/loader/`. */
export class LoaderError extends WasmFunctionError<LoaderErrorCode> {
  override readonly name = "LoaderError";
}

/** No answer, and only that: what caches may make up for. */
export function isUnreachable(thrown: unknown): thrown is LoaderError {
  return (
    thrown instanceof LoaderError && thrown.code === "registry-unreachable"
  );
}

/** Nothing could be written here, or no more half-way: then the next try writes elsewhere. */
export function isUnwritable(thrown: unknown): thrown is LoaderError {
  return thrown instanceof LoaderError && thrown.code === "cache-unwritable";
}

/** The server answered, and not with what was asked for: 400, 401, 403, 404, 405, 410. */
export function isRefusal(thrown: unknown): thrown is LoaderError {
  return (
    thrown instanceof LoaderError &&
    (thrown.code === "registry-auth-failed" ||
      thrown.code === "registry-refused" ||
      thrown.code === "module-not-found")
  );
}
