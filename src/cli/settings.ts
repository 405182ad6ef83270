import { X509Certificate } from "node:crypto";
import { statSync } from "node:fs";
import { createSecureContext } from "node:tls";

import type { Command } from "commander";

import type { InputCeilings } from "../admission/index.js";
import {
  type Config,
  ConfigError,
  configFrom,
  type Environment,
  type FlagName,
  originOf,
} from "../config.js";
import type { EngineOptions } from "../engine/index.js";
import { errorText, quoted } from "../errors.js";
import { maxResponseBytes } from "../function/index.js";
import {
  dockerConfigFileOf,
  type LoaderOptions,
  type SchemeOptions,
} from "../loader/index.js";
import type { ModuleSource, SourceParsers } from "../ports.js";
import { readSettingsFile } from "./settings-file.js";

/** What a command goes by. */
export interface Settings extends Config {
  /**
   * What follows a flag's name in messages: ` (MODULE_DIR)`, its variable, when its value comes from
   * there; else nothing.
   */
  readonly origin: (flag: FlagName) => string;
}

/**
 * What a parsed command and the environment ask for.
 * @param names the flags that the command has; all by default
 * @throws ConfigError flag-invalid
 */
export function readSettings(
  command: Command,
  env: Environment,
  names?: readonly FlagName[],
): Settings {
  const config = configFrom(command, env, names);
  const origin = (name: FlagName) => originOf(name, command);
  return Object.freeze<Settings>({ ...config, origin });
}

/** Whether somebody chose where a command keeps what it makes; else it keeps nothing. */
export function isCacheDirGiven(command: Command, env: Environment): boolean {
  const flag: unknown = command.getOptionValue("cacheDir");
  return flag !== undefined || (env["CACHE_DIR"] ?? "") !== "";
}

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
export function engineOptions(config: Settings): EngineOptions {
  return {
    cacheDir: config.cacheDir,
    artifactKey: readArtifactKey(config),
    trustCacheDir: config.trustCacheDir,
    engineWorkers: config.engineWorkers,
    memoryLimitBytes: config.moduleMemoryBytes,
    stackLimitBytes: config.moduleStackBytes,
    // Beyond what Crossplane can receive, so that the refusal can name what makes it large.
    maxResponseBytes: 4 * maxResponseBytes,
    maxConcurrentRuns: config.maxConcurrentRuns,
    maxTotalRunMemoryBytes: config.maxTotalRunMemoryBytes,
    keepsIdleModules: config.enableMemoryCache,
    maxCachedModules: config.maxCachedModules,
    maxConcurrentCompiles: config.maxConcurrentCompiles,
  };
}

/**
 * How a configuration has servers spoken to.
 * @throws ConfigError flag-invalid when a file of --registry-ca cannot be used
 */
export function schemeOptions(config: Settings): SchemeOptions {
  const origin = config.origin("registry-ca");
  return {
    insecureHosts: config.insecureRegistries,
    tokenServers: config.tokenServers,
    registryCas: new Map(
      config.registryCas.map(({ host, file }) => [
        host,
        readCa(file, `--registry-ca${origin} ${host}`),
      ]),
    ),
  };
}

/** Where a configuration has modules looked for, and kept. */
export function loaderOptions(
  config: Config,
  scheme: SchemeOptions,
  env: Environment,
): LoaderOptions {
  return {
    ...scheme,
    moduleDir: config.moduleDir,
    maxModuleBytes: config.maxModuleBytes,
    cacheDir: config.cacheDir,
    tags: {
      resolveIntervalMs: config.tagResolveIntervalMs,
      maxStalenessMs: config.maxTagStalenessMs,
    },
    accessRecheckIntervalMs: config.accessRecheckIntervalMs,
    dockerConfigFile: dockerConfigFileOf(env),
    env,
  };
}

/**
 * The modules of --warm-modules.
 * @throws ConfigError flag-invalid
 */
export function warmSources(
  { warmModules, moduleDir, origin }: Settings,
  parsers: SourceParsers,
): readonly ModuleSource[] {
  return warmModules.map((text) => {
    const refuse = (reason: string) =>
      new ConfigError(
        "flag-invalid",
        `--warm-modules${origin("warm-modules")} ${quoted(text)}: ${reason}`,
      );
    if (text.startsWith("path:")) {
      if (moduleDir === null)
        throw refuse("a file needs --module-dir (MODULE_DIR)");
      return {
        type: "Path",
        path: text.slice("path:".length),
        manifestPath: null,
      };
    }
    const ref = parsers.parseReference(text);
    if (ref.kind === "error") throw refuse(ref.message);
    if (ref.value.digest === null)
      throw refuse("expected a reference with a digest, or path:<file>");
    return {
      type: "OCI",
      ref: ref.value,
      expectedDigest: null,
      credentials: null,
    };
  });
}

/**
 * What every `Path` module lies under has to be there before a server says that it is ready, or a
 * command says that there is no such module.
 * @throws ConfigError flag-invalid
 */
export function requireModuleDir({ moduleDir, origin }: Settings): void {
  if (moduleDir === null) return;
  const refuse = (reason: string, cause?: unknown) => {
    const message = `--module-dir${origin("module-dir")}: ${reason}`;
    return new ConfigError("flag-invalid", message, { cause });
  };
  let isDirectory: boolean;
  try {
    isDirectory = statSync(moduleDir).isDirectory();
  } catch (cause) {
    throw refuse(errorText(cause), cause);
  }
  if (isDirectory) return;
  throw refuse(`expected a directory, got ${moduleDir}`);
}

/** More than the authorities of all the world. */
const maxCaBytes = 1024 * 1024;

/** @param flag what messages begin with */
function readCa(file: string, flag: string): string {
  const refuse = (reason: string, cause?: unknown) =>
    new ConfigError("flag-invalid", `${flag}: ${reason}`, { cause });
  let pem: string;
  try {
    pem = readSettingsFile(file, maxCaBytes).toString();
  } catch (cause) {
    throw refuse(errorText(cause), cause);
  }
  try {
    // What does not parse here would make every connection fail later, or none.
    for (const [certificate] of pem.matchAll(certificatePattern))
      new X509Certificate(certificate);
    createSecureContext({ ca: pem });
  } catch (cause) {
    throw refuse(`${file} does not parse: ${errorText(cause)}`, cause);
  }
  const found = [...pem.matchAll(certificatePattern)].length;
  if (found === 0)
    throw refuse(`expected certificates in PEM in ${file}, got none`);
  // What does not look like one would be passed over.
  if (found !== pem.split("-----BEGIN ").length - 1)
    throw refuse(
      `expected nothing but certificates in PEM in ${file}, got a cut one or something else`,
    );
  return pem;
}

const certificatePattern =
  /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** As long as the HMAC's own output. */
const minKeyBytes = 32;
const maxKeyBytes = 64 * 1024;

function readArtifactKey({
  artifactKeyFile: file,
  origin,
}: Settings): Uint8Array | null {
  if (file === null) return null;
  const refuse = (reason: string, cause?: unknown) => {
    const message = `--artifact-key-file${origin("artifact-key-file")}: ${reason}`;
    return new ConfigError("flag-invalid", message, { cause });
  };
  let key: Uint8Array;
  try {
    key = readSettingsFile(file, maxKeyBytes);
  } catch (cause) {
    throw refuse(errorText(cause), cause);
  }
  if (key.length >= minKeyBytes) return key;
  throw refuse(
    `expected at least ${minKeyBytes} bytes in ${file}, got ${key.length}`,
  );
}
