import { open } from "node:fs/promises";
import { LRUCache } from "lru-cache";
import { errnoOf, escaped } from "../errors.js";
import type {
  Clock,
  ManifestBytes,
  ModuleFile,
  RequestScope,
} from "../ports.js";
import { digestOf } from "./chunks.js";
import { LoaderError, type LoaderErrorCode } from "./error.js";
import { MAX_MODULE_MANIFEST_BYTES } from "./limits.js";
import { createPathSource } from "./path.js";
import { READ_UNFOLLOWED } from "./open-flags.js";

/** Finds module manifests that are files. */
export interface ManifestFiles {
  /**
   * Reads the manifest `manifestPath` under --module-dir, which is found by the rules for modules.
   * The file is looked at each time and read when it has changed. At most 64 KiB.
   * @throws LoaderError
   */
  read(manifestPath: string, scope: RequestScope): Promise<ManifestBytes>;
}

const MAX_REMEMBERED_BYTES = 4 * 1024 * 1024;

/**
 * A reader that remembers the manifests it has read last, 4 MiB of them.
 * @param moduleDir where they lie; null = every path is refused
 */
export function createManifestFiles(
  moduleDir: string | null,
  clock: Clock,
): ManifestFiles {
  const files = createPathSource(
    {
      moduleDir,
      maxBytes: MAX_MODULE_MANIFEST_BYTES,
      maxBytesRule: "a module manifest may have",
      subject: "module.manifestPath",
    },
    clock,
  );
  const known = new LRUCache<string, ManifestBytes>({
    maxSize: MAX_REMEMBERED_BYTES,
    sizeCalculation: ({ bytes }) => bytes.length,
  });
  return {
    async read(manifestPath, scope) {
      const file = await files.resolve(manifestPath, scope);
      const remembered = known.get(file.digest);
      if (remembered !== undefined) return remembered;
      const bytes = await readFound(file, manifestPath);
      const manifest = { form: "file", bytes, digest: file.digest } as const;
      known.set(file.digest, manifest);
      return manifest;
    },
  };
}

/**
 * The bytes of a manifest that was found a moment ago; it may have changed since.
 * @param manifestPath what its step calls it
 * @throws LoaderError module-unreadable, module-changed
 */
export async function readFound(
  file: ModuleFile,
  manifestPath: string,
): Promise<Uint8Array> {
  const refuse = (code: LoaderErrorCode, reason: string, cause?: unknown) =>
    new LoaderError(
      code,
      `cannot resolve module: module.manifestPath ${escaped(manifestPath)}: ${reason}`,
      { cause },
    );
  const bytes = await readBytes(file).catch((cause: unknown) => {
    const reason = `the file cannot be read (${errnoOf(cause)})`;
    throw refuse("module-unreadable", reason, cause);
  });
  if (digestOf(bytes) === file.digest) return bytes;
  throw refuse("module-changed", "the file changed while it was being read");
}

/** No more of them than the file had when it was found. */
async function readBytes(file: ModuleFile): Promise<Uint8Array> {
  const handle = await open(file.filePath, READ_UNFOLLOWED);
  try {
    const buffer = Buffer.alloc(file.sizeBytes);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } finally {
    await handle.close();
  }
}
