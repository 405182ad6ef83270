import { type BigIntStats, lstatSync, realpathSync } from "node:fs";
import path from "node:path";
import { errnoOf, escaped } from "../errors.js";
import type { Clock, ModuleFile, RequestScope } from "../ports.js";
import { createDigestCache } from "./digest-cache.js";
import { LoaderError, type LoaderErrorCode } from "./error.js";
import { createPathMemory } from "./path-memory.js";

/** Which files are looked for, and what refusals call them. */
export interface PathOptions {
  /** Where the files lie, a local directory; null = they are refused. */
  readonly moduleDir: string | null;
  readonly maxBytes: number;
  /** What allows that many, with its verb: `--max-module-size allows`. */
  readonly maxBytesRule: string;
  /** What refusals put before the path. */
  readonly subject: "module Path" | "module.manifestPath";
  /** Called when a file was read and hashed; most are remembered. */
  readonly onHashed?: (seconds: number) => void;
}

/** Finds files under --module-dir. */
export interface PathSource {
  /**
   * Finds the file `wantedPath` under --module-dir. A relative path starts there; an absolute one
   * must begin with --module-dir as the operator wrote it. Symbolic links may lead anywhere inside
   * (Kubernetes volumes are made of them), never out.
   * @throws LoaderError
   */
  resolve(wantedPath: string, scope: RequestScope): Promise<ModuleFile>;
}

/** A source of files; it remembers those it has read. */
export function createPathSource(
  options: PathOptions,
  clock: Clock,
): PathSource {
  const digests = createDigestCache(
    clock,
    options.onHashed ?? (() => undefined),
  );
  const memory = createPathMemory(clock);
  return {
    async resolve(wantedPath, scope) {
      // Synchronous calls on purpose: these look-ups in the kernel's cache take a few µs, the same
      // through Node's thread pool takes ten times that, and every request pays it.
      const recalled = memory.recall(wantedPath);
      if (recalled !== undefined) return recalled;
      const refuse: Refuse = (code, reason, cause) =>
        new LoaderError(
          code,
          `cannot resolve module: ${options.subject} ${escaped(wantedPath)}: ${reason}`,
          { cause },
        );
      const wanted = placeUnderModuleDir(wantedPath, options.moduleDir, refuse);
      const filePath = followLinks(wanted, refuse);
      const stats = checkFile(filePath, options, refuse);
      const hashed = await digests.digestOf(filePath, stats, scope);
      if (hashed.kind === "refused")
        throw refuse(hashed.code, hashed.reason, hashed.cause);
      const found: ModuleFile = {
        digest: hashed.digest,
        filePath,
        sizeBytes: Number(stats.size),
        description: `Path ${escaped(wantedPath)}`,
      };
      if (digests.remembers(stats))
        memory.remember(wantedPath, wanted.file, stats, found);
      return found;
    },
  };
}

/** Makes the error for one file from a code and the end of its sentence. */
type Refuse = (
  code: LoaderErrorCode,
  reason: string,
  cause?: unknown,
) => LoaderError;

interface Wanted {
  readonly moduleDir: string;
  readonly file: string;
}

/** Decides on the text alone, so that nothing outside is even looked at. */
function placeUnderModuleDir(
  wantedPath: string,
  dir: string | null,
  refuse: Refuse,
): Wanted {
  if (dir === null)
    throw refuse("module-dir-unset", "the runtime has no --module-dir");
  if (wantedPath === "") throw refuse("path-invalid", "the path is empty");
  if (wantedPath.includes("\0"))
    throw refuse("path-invalid", "the path holds a NUL character");
  const moduleDir = path.resolve(dir);
  const file = path.resolve(moduleDir, wantedPath);
  if (!isInside(moduleDir, file)) {
    throw refuse(
      "path-outside-module-dir",
      "the path leads out of --module-dir",
    );
  }
  return { moduleDir, file };
}

/** The directory is looked up each time: it may itself be a link that a new release moves. */
function followLinks(wanted: Wanted, refuse: Refuse): string {
  const moduleDir = attempt(
    () => realpathSync.native(wanted.moduleDir),
    (errno, cause) =>
      refuse(
        "module-dir-unreadable",
        `--module-dir cannot be read (${errno})`,
        cause,
      ),
  );
  const file = attempt(
    () => realpathSync.native(wanted.file),
    (errno, cause) => cannotReach(errno, cause, refuse),
  );
  if (isInside(moduleDir, file)) return file;
  throw refuse(
    "path-outside-module-dir",
    "a symbolic link leads out of --module-dir",
  );
}

/** By `lstat`, so that a FIFO or device is refused without being opened. */
function checkFile(
  filePath: string,
  { maxBytes, maxBytesRule }: PathOptions,
  refuse: Refuse,
): BigIntStats {
  const stats = attempt(
    () => lstatSync(filePath, { bigint: true }),
    (errno, cause) => cannotReach(errno, cause, refuse),
  );
  if (!stats.isFile()) {
    throw refuse(
      "module-not-regular",
      `expected a regular file, got ${kindOf(stats)}`,
    );
  }
  if (stats.size === 0n) throw refuse("module-empty", "the file is empty");
  if (stats.size > maxBytes) {
    throw refuse(
      "module-too-large",
      `the file has ${String(stats.size)} bytes, ${maxBytesRule} ${String(maxBytes)}`,
    );
  }
  return stats;
}

function attempt<T>(
  call: () => T,
  toError: (errno: string, cause: unknown) => LoaderError,
): T {
  try {
    return call();
  } catch (cause) {
    throw toError(errnoOf(cause), cause);
  }
}

function cannotReach(
  errno: string,
  cause: unknown,
  refuse: Refuse,
): LoaderError {
  switch (errno) {
    case "ENOENT":
    case "ENOTDIR":
      return refuse(
        "module-not-found",
        "no such file under --module-dir",
        cause,
      );
    case "ENAMETOOLONG":
      return refuse("path-invalid", "the path is too long", cause);
    default:
      return refuse(
        "module-unreadable",
        `the file cannot be read (${errno})`,
        cause,
      );
  }
}

function isInside(dir: string, file: string): boolean {
  const relative = path.relative(dir, file);
  return relative !== ".." && !relative.startsWith(`..${path.sep}`);
}

function kindOf(stats: BigIntStats): string {
  if (stats.isDirectory()) return "a directory";
  if (stats.isFIFO()) return "a FIFO";
  if (stats.isSocket()) return "a socket";
  if (stats.isSymbolicLink()) return "a symbolic link";
  return "a device";
}
