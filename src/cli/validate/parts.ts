import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  compileOperatorPolicy,
  compositeFromJson,
  createAdmission,
  type PolicyEngine,
} from "../../admission/index.js";
import type { Config } from "../../config.js";
import type { createEngine, Engine } from "../../engine/index.js";
import { createLoader, sourceParsers } from "../../loader/index.js";
import type { Clock, Logger } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import { readManifest } from "../files/manifest.js";
import { engineOptions, inputCeilings } from "../settings.js";
import type { CheckParts, ObservedXr } from "./check.js";
import type { ResolveParts } from "./resolve.js";

/** What the parts are made of. */
export interface PartsOptions {
  readonly config: Config;
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
  const { config, clock } = options;
  const policies = options.createPolicyEngine();
  const sandbox = createSandbox(options);
  try {
    const operatorPolicy =
      config.sandboxPolicyFile === null
        ? null
        : await compileOperatorPolicy(config.sandboxPolicyFile, policies);
    const ceilings = inputCeilings(config);
    const admission = createAdmission({
      ceilings,
      parsers: sourceParsers,
      engine: policies,
      operatorPolicy: () => operatorPolicy,
    });
    const resolve: ResolveParts = {
      admission,
      loader: createLoader(config, clock),
      engine: () => sandbox.start(),
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
  const { apiVersion, kind, object } = await readManifest(file);
  return { type: { apiVersion, kind }, resource: compositeFromJson(object) };
}

/** A sandbox that starts when it is asked for: most runs do without. */
function createSandbox(options: PartsOptions) {
  const { config, keepsCache, clock } = options;
  let engine: Engine | undefined;
  let temporaryDir: string | undefined;
  return {
    async start(): Promise<Engine> {
      if (engine !== undefined) return engine;
      const sandbox = engineOptions(config);
      if (!keepsCache)
        temporaryDir = await mkdtemp(join(tmpdir(), "function-wasm-validate-"));
      engine = options.createEngine(
        {
          ...sandbox,
          cacheDir: temporaryDir ?? config.cacheDir,
          // Nothing runs.
          engineWorkers: 1,
          maxConcurrentRuns: 1,
        },
        clock,
        silentLogger,
      );
      return engine;
    },

    async close(): Promise<void> {
      await engine?.close();
      if (temporaryDir !== undefined)
        await rm(temporaryDir, { recursive: true, force: true });
    },
  };
}

/** What there is to say is in the report. */
const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};
