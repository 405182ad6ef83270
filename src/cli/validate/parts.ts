import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  compileOperatorPolicy,
  compositeFromJson,
  createAdmission,
  type PolicyEngine,
} from "../../admission/index.js";
import type { Environment } from "../../config.js";
import type { createEngine, Engine } from "../../engine/index.js";
import {
  createLoader,
  createSourceParsers,
  type Loader,
  type SchemeOptions,
} from "../../loader/index.js";
import type { Clock } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import { readManifest } from "../files/manifest.js";
import { namingFlag } from "../files/naming-flag.js";
import {
  engineOptions,
  inputCeilings,
  loaderOptions,
  schemeOptions,
  type Settings,
} from "../settings.js";
import { noMetrics, silentLogger } from "../silent.js";
import type { CheckParts, ObservedXr } from "./check.js";
import type { ResolveParts } from "./resolve.js";

/** What the parts are made of. */
export interface PartsOptions {
  readonly config: Settings;
  readonly env: Environment;
  /** Whether compiled modules are kept in `config.cacheDir`, which somebody chose. */
  readonly keepsCache: boolean;
  /** File of the observed composite resource; null = unknown. */
  readonly xrFile: string | null;
  readonly resolves: boolean;
  readonly createEngine: typeof createEngine;
  readonly createPolicyEngine: () => PolicyEngine;
  readonly onLoad: (moduleDescription: string) => void;
  readonly clock: Clock;
}

/** What Inputs are judged with, until it is closed. */
export interface OpenParts {
  readonly parts: CheckParts;
  close(): Promise<void>;
}

/**
 * Reads what all Inputs are judged with, the operator policy and the composite resource first.
 * @throws AdmissionError operator-policy-invalid, policy-unavailable; FileError
 */
export async function openParts(options: PartsOptions): Promise<OpenParts> {
  const { config } = options;
  const policies = options.createPolicyEngine();
  const scheme = schemeOptions(config);
  const sandbox = createSandbox(options, scheme);
  try {
    const operatorPolicy =
      config.sandboxPolicyFile === null
        ? null
        : await compileOperatorPolicy(config.sandboxPolicyFile, policies);
    const ceilings = inputCeilings(config);
    const admission = createAdmission({
      ceilings,
      parsers: createSourceParsers(scheme),
      engine: policies,
      operatorPolicy: () => operatorPolicy,
    });
    const resolve: ResolveParts = {
      admission,
      loader: () => sandbox.loader(),
      engine: () => sandbox.engine(),
      onLoad: options.onLoad,
      scope: createRequestScope({ deadlineAtMs: Infinity }),
      logger: silentLogger,
    };
    const parts = {
      admission,
      ceilings,
      xr: options.xrFile === null ? null : await readXr(options.xrFile),
      unknownXr: compositeFromJson(undefined),
      resolve: options.resolves ? resolve : null,
      logger: silentLogger,
    };
    return { parts, close };
  } catch (thrown) {
    await close();
    throw thrown;
  }

  async function close(): Promise<void> {
    await policies.close();
    await sandbox.close();
  }
}

async function readXr(file: string): Promise<ObservedXr> {
  const { apiVersion, kind, object } = await namingFlag("--xr", () =>
    readManifest(file),
  );
  return { type: { apiVersion, kind }, resource: compositeFromJson(object) };
}

/** A loader and a sandbox that start when they are asked for: most runs do without. */
function createSandbox(options: PartsOptions, scheme: SchemeOptions) {
  const { config, env, keepsCache, clock } = options;
  let engine: Engine | undefined;
  let loader: Loader | undefined;
  let temporaryDir: string | undefined;

  async function cacheDir(): Promise<string> {
    if (keepsCache) return config.cacheDir;
    temporaryDir ??= await mkdtemp(join(tmpdir(), "function-wasm-validate-"));
    return temporaryDir;
  }

  return {
    async loader(): Promise<Loader> {
      const serving = loaderOptions(config, scheme, env);
      loader ??= createLoader(
        {
          ...serving,
          // It is a flag of serve, and nobody can set it here.
          tags: { ...serving.tags, isStalenessFlag: false },
          cacheDir: await cacheDir(),
        },
        { clock, logger: silentLogger, metrics: noMetrics },
      );
      return loader;
    },

    async engine(): Promise<Engine> {
      engine ??= options.createEngine(
        {
          ...engineOptions(config),
          cacheDir: await cacheDir(),
          // Nothing runs.
          engineWorkers: 1,
          maxConcurrentRuns: 1,
        },
        clock,
        silentLogger,
        noMetrics,
      );
      return engine;
    },

    async close(): Promise<void> {
      await engine?.close();
      await loader?.close();
      if (temporaryDir !== undefined)
        await rm(temporaryDir, { recursive: true, force: true });
    },
  };
}
