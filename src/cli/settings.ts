import { readFileSync } from "node:fs";

import type { InputCeilings } from "../admission/index.js";
import { ConfigError, type Config } from "../config.js";
import type { EngineOptions } from "../engine/index.js";
import { errorText } from "../errors.js";
import { maxResponseBytes } from "../function/index.js";

/** What a configuration allows an Input. */
export function inputCeilings(config: Config): InputCeilings {
  return {
    timeoutMs: config.moduleTimeoutMs,
    timeoutText: config.moduleTimeoutText,
    memoryBytes: config.moduleMemoryBytes,
    memoryText: config.moduleMemoryText,
    moduleDirSet: config.moduleDir !== null,
    allowUnpinnedTags: config.allowUnpinnedTags,
  };
}

/**
 * The sandbox that a configuration asks for.
 * @throws ConfigError flag-invalid when --artifact-key-file cannot be used
 */
export function engineOptions(config: Config): EngineOptions {
  return {
    cacheDir: config.cacheDir,
    artifactKey: readArtifactKey(config.artifactKeyFile),
    trustCacheDir: config.trustCacheDir,
    engineWorkers: config.engineWorkers,
    memoryLimitBytes: config.moduleMemoryBytes,
    stackLimitBytes: config.moduleStackBytes,
    // Beyond what Crossplane can receive, so that the refusal can name what makes it large.
    maxResponseBytes: 4 * maxResponseBytes,
    maxConcurrentRuns: config.maxConcurrentRuns,
    maxTotalRunMemoryBytes: config.maxTotalRunMemoryBytes,
    maxCachedModules: config.maxCachedModules,
    maxConcurrentCompiles: config.maxConcurrentCompiles,
  };
}

/** As long as the HMAC's own output. */
const minKeyBytes = 32;

function readArtifactKey(file: string | null): Uint8Array | null {
  if (file === null) return null;
  let key: Uint8Array;
  try {
    key = readFileSync(file);
  } catch (cause) {
    const message = `--artifact-key-file: ${errorText(cause)}`;
    throw new ConfigError("flag-invalid", message, { cause });
  }
  if (key.length >= minKeyBytes) return key;
  throw new ConfigError(
    "flag-invalid",
    `--artifact-key-file: expected at least ${minKeyBytes} bytes in ${file}, got ${key.length}`,
  );
}
