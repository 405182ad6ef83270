import {
  createLoader,
  type Loader,
  type LoaderOptions,
} from "../../../src/loader/index.js";
import type {
  Clock,
  Digest,
  ModuleSource,
  Parsed,
  RequestScope,
} from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { sourceParsers } from "../../support/source-parsers.js";
import { recordingLogger, recordingMetrics } from "../function/fixtures.js";

/** A loader and what it said. */
export interface TestLoader {
  readonly loader: Loader;
  readonly lines: ReturnType<typeof recordingLogger>["lines"];
  readonly counted: readonly string[];
  /** Its clocks run on by that much. */
  advance(ms: number): void;
}

/** A loader on the real network and the disk, whose clocks can be put forward. */
export function createTestLoader(
  options: Partial<LoaderOptions> & Pick<LoaderOptions, "cacheDir">,
): TestLoader {
  let aheadMs = 0;
  const clock: Clock = {
    nowMs: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now() + aheadMs,
  };
  const { logger, lines } = recordingLogger();
  const metrics = recordingMetrics();
  const loader = createLoader(
    {
      insecureHosts: [],
      registryCas: new Map(),
      tokenServers: new Map(),
      moduleDir: null,
      maxModuleBytes: 1024 * 1024,
      tags: { resolveIntervalMs: 0, maxStalenessMs: 3_600_000 },
      accessRecheckIntervalMs: 600_000,
      dockerConfigFile: null,
      env: {},
      ...options,
    },
    { clock, logger, metrics },
  );
  return {
    loader,
    lines,
    counted: metrics.counted,
    advance(ms) {
      aheadMs += ms;
    },
  };
}

export function openScope(): RequestScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}

type OciSource = Extract<ModuleSource, { type: "OCI" }>;

/** `location` may have a tag, too. */
export function pinned(location: string, digest: Digest): OciSource {
  return tagged(`${location}@${digest}`);
}

export function tagged(
  text: string,
  overrides: Partial<OciSource> = {},
): OciSource {
  return {
    type: "OCI",
    ref: parsed(sourceParsers.parseReference(text)),
    expectedDigest: null,
    credentials: null,
    ...overrides,
  };
}

function parsed<T>(result: Parsed<T>): T {
  if (result.kind === "ok") return result.value;
  throw new Error(result.message);
}

type HttpSource = Extract<ModuleSource, { type: "HTTP" }>;

/** A module on a web server; its manifest, if it has one, may be anywhere. */
export function atUrl(
  href: string,
  digest: Digest,
  manifest: { readonly href: string; readonly digest: Digest } | null = null,
): HttpSource {
  const urlOf = (text: string) => parsed(sourceParsers.parseHttpUrl(text));
  return {
    type: "HTTP",
    url: urlOf(href),
    digest,
    manifest:
      manifest === null
        ? null
        : {
            url: urlOf(manifest.href),
            digest: manifest.digest,
          },
  };
}
