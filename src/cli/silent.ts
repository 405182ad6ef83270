import type { Logger, Metrics } from "../ports.js";

/** For commands that have nothing to say but their result. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** Nobody asks a command for its metrics. */
export const noMetrics: Metrics = {
  requestEnded: () => undefined,
  moduleFetched: () => undefined,
  tagResolved: () => undefined,
  blobLookedUp: () => undefined,
  compiledLookedUp: () => undefined,
  artifactLookedUp: () => undefined,
  cacheSwept: () => undefined,
  compileEnded: () => undefined,
  moduleLoaded: () => undefined,
  runQueued: () => undefined,
  runsInFlight: () => undefined,
  runEnded: () => undefined,
  memoryDenied: () => undefined,
  policyReloaded: () => undefined,
  certificatesReloaded: () => undefined,
  clientRefused: () => undefined,
};
