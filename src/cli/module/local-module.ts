import { open, stat } from "node:fs/promises";

import { checkAbi, type LayerOfFile } from "../../admission/index.js";
import { escaped } from "../../errors.js";
import { namingModule } from "../../function/index.js";
import { findModuleFile, type PublishedModule } from "../../loader/index.js";
import type { ModuleFile, RequestScope } from "../../ports.js";
import { FileError } from "../files/error.js";
import { engineOptions, type Settings } from "../settings.js";
import { noMetrics, silentLogger } from "../silent.js";
import { readComponentNames } from "./component-names.js";
import type { ModuleHost } from "./host.js";
import { type ManifestOption, readManifestFile } from "./manifest-file.js";
import type { Say } from "./outcome.js";
import { withTemporaryDir } from "./temporary-dir.js";

/** A module in a file that a runtime with these flags would take. */
export interface LocalModule {
  readonly file: ModuleFile;
  readonly abi: 1 | 2;
  /** null = it has none. */
  readonly manifest: LayerOfFile | null;
}

/**
 * Judges a module and its manifest as the runtime would. It is compiled, and nothing of it runs.
 * @throws what the runtime would refuse it with, and FileError
 */
export async function judgeModule(
  wasmFile: string,
  manifestOption: ManifestOption,
  config: Settings,
  host: ModuleHost,
  say: Say,
  scope: RequestScope,
): Promise<LocalModule> {
  await refuseNoFile(wasmFile);
  const file = await findModuleFile(wasmFile, config.maxModuleBytes, scope);
  const { description } = file;
  const manifest = await readManifestFile(
    manifestOption,
    wasmFile,
    description,
    say,
  );
  say(`compiling ${description} (${file.sizeBytes} bytes)`);
  const abi = await abiOf(file, config, host, scope);
  if (manifest !== null) checkAbi(manifest.manifest, description, abi);
  return { file, abi, manifest };
}

/** What the loader has no words for: it is not given such names by accident. */
async function refuseNoFile(wasmFile: string): Promise<void> {
  if (wasmFile === "")
    throw new FileError(
      "file-invalid",
      'module: expected the path of a file, got ""',
    );
  const isDirectory = await stat(wasmFile).then(
    (stats) => stats.isDirectory(),
    () => false,
  );
  if (isDirectory)
    throw new FileError(
      "file-invalid",
      `module ${escaped(wasmFile, 1000)}: expected a file, got a directory`,
    );
}

/**
 * What an artifact says of a module that was judged.
 * @throws Error when the file is no longer what it was
 */
export async function describeForPublication({
  file: { digest, filePath, sizeBytes, description },
  abi,
}: LocalModule): Promise<PublishedModule> {
  if (abi === 1) return { digest, sizeBytes, abi };
  const handle = await open(filePath);
  try {
    const component = await readComponentNames(handle, sizeBytes);
    return { digest, sizeBytes, abi, component };
  } catch (thrown) {
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    throw new Error(`module ${description}: ${escaped(reason)}`, {
      cause: thrown,
    });
  } finally {
    await handle.close();
  }
}

async function abiOf(
  file: ModuleFile,
  config: Settings,
  host: ModuleHost,
  scope: RequestScope,
): Promise<1 | 2> {
  return await withTemporaryDir(async (cacheDir) => {
    const engine = host.createEngine(
      {
        ...engineOptions(config),
        cacheDir,
        // Nothing runs.
        engineWorkers: 1,
        maxConcurrentRuns: 1,
      },
      host.clock,
      silentLogger,
      noMetrics,
    );
    try {
      const found = { ...file, locate: () => Promise.resolve(file) };
      const lease = await engine.load(found, scope);
      lease.release();
      return lease.abi;
    } catch (thrown) {
      throw namingModule(thrown, file.description);
    } finally {
      await engine.close();
    }
  });
}
