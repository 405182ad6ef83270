import { errorText } from "../errors.js";
import type { Clock, Logger } from "../ports.js";
import { notAfterOf } from "./certificate-dates.js";
import { createExpiryWarning } from "./tls-expiry.js";
import {
  parseTlsIdentity,
  readTlsFiles,
  type TlsFiles,
  type TlsIdentity,
} from "./tls-files.js";

/** Certificates that follow their files. */
export interface FollowedTls {
  /** The last set that could be used. */
  current(): TlsIdentity;
  /** Stops following. */
  close(): void;
}

/** What {@link followTls} works with. */
export interface FollowTlsOptions {
  /** Holds tls.crt, tls.key and ca.crt. */
  readonly directory: string;
  readonly onReload: (result: "error" | "ok") => void;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How often the files are read; default 1 s. */
  readonly pollAfterMs?: number;
}

/**
 * Reads the certificates of a directory, then follows their files: by their bytes, so that it sees
 * the swapped links of a Kubernetes volume, and any file system. What cannot be used is told once,
 * and the last good set stays until the files change again, or are usable without that: a
 * certificate may begin later.
 * @throws FunctionError start-refused
 */
export async function followTls(
  options: FollowTlsOptions,
): Promise<FollowedTls> {
  const { directory, onReload, clock, logger, pollAfterMs = 1_000 } = options;
  const warnOfExpiry = createExpiryWarning(clock, logger);
  const first = await readTlsFiles(directory);
  let identity = parseTlsIdentity(first, clock.nowMs());
  warnOfExpiry(identity);
  /** What the last look found, and what was last judged. */
  let seen = first.fingerprint;
  let judged = first.fingerprint;
  let failure: Failure | null = null;
  let isClosed = false;
  let timer = later();

  function later(): NodeJS.Timeout {
    return setTimeout(() => void poll(), pollAfterMs).unref();
  }

  async function poll(): Promise<void> {
    const found = await look(directory);
    if (isClosed) return;
    timer = later();
    // What changed just now may still be being written: it has to look the same twice.
    if (found.state === seen && isDue(found)) judge(found);
    seen = found.state;
    warnOfExpiry(identity);
  }

  function isDue(found: Found): boolean {
    if (found.state !== judged) return true;
    if (failure === null) return false;
    return clock.monotonicMs() - failure.atMs >= retryAfterMs;
  }

  function judge(found: Found): void {
    const last = found.state === judged ? failure : null;
    judged = found.state;
    try {
      identity = parseTlsIdentity(filesOf(found), clock.nowMs());
    } catch (thrown) {
      failed(errorText(thrown), last);
      return;
    }
    failure = null;
    onReload("ok");
    logger.info(
      {
        notAfter: notAfterOf(identity.leaf),
        sha256: identity.leaf.fingerprint256,
        authorities: identity.clientAuthorities.length,
      },
      "certificates reloaded",
    );
  }

  function failed(reason: string, last: Failure | null): void {
    failure = { reason, atMs: clock.monotonicMs() };
    if (last?.reason === reason) return;
    onReload("error");
    logger.warn(
      { reason },
      "cannot reload the certificates, the last good ones stay",
    );
  }

  return {
    current: () => identity,
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

/** How often the same files are tried again that could not be used. */
const retryAfterMs = 60_000;

interface Failure {
  readonly reason: string;
  /** Of the monotonic clock. */
  readonly atMs: number;
}

/** What lies in the directory; `state` is equal for what would be judged alike. */
type Found = { readonly state: string } & (
  | { readonly kind: "files"; readonly files: TlsFiles }
  | { readonly kind: "unreadable"; readonly error: unknown }
);

async function look(directory: string): Promise<Found> {
  try {
    const files = await readTlsFiles(directory);
    return { kind: "files", state: files.fingerprint, files };
  } catch (error) {
    return { kind: "unreadable", state: errorText(error), error };
  }
}

function filesOf(found: Found): TlsFiles {
  if (found.kind === "unreadable") throw found.error;
  return found.files;
}
