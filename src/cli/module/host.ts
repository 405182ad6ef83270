import type { Environment } from "../../config.js";
import type { createEngine } from "../../engine/index.js";
import type { Clock } from "../../ports.js";

/** The outside world, as far as the module commands need it. */
export interface ModuleHost {
  readonly env: Environment;
  readonly clock: Clock;
  readonly createEngine: typeof createEngine;
}
