import { AdmissionError } from "../error.js";
import type { JsonValue } from "../json.js";
import {
  isRuntimeTooOld,
  runtimeCompatibility,
} from "../manifest/compatibility.js";
import type { ModuleManifest } from "../manifest/manifest.js";

/**
 * Holds the runtime and the step's `config` to what the manifest needs.
 * @param module what messages call it
 * @param config read only when the manifest has a schema; undefined when the Input has none, which
 *   is the empty object
 * @throws AdmissionError runtime-too-old, config-invalid
 */
export function checkSuitability(
  manifest: ModuleManifest,
  module: string,
  config: () => JsonValue | undefined,
): void {
  const { minRuntime, configSchema } = manifest;
  if (minRuntime !== null && isRuntimeTooOld(minRuntime)) {
    throw new AdmissionError(
      "runtime-too-old",
      `module ${module} requires runtime v${minRuntime} or newer, this is v${runtimeCompatibility}`,
    );
  }
  const problem = configSchema?.check(config() ?? {}) ?? null;
  if (problem !== null) {
    throw new AdmissionError(
      "config-invalid",
      `module ${module}: config does not match the module's schema: ${problem}`,
    );
  }
}

/**
 * Holds a module's binary to the ABI its manifest declares.
 * @throws AdmissionError abi-mismatch
 */
export function checkAbi(
  manifest: ModuleManifest,
  module: string,
  abi: 1 | 2,
): void {
  if (manifest.abi === abi) return;
  throw new AdmissionError(
    "abi-mismatch",
    `module ${module}: its manifest declares abi ${manifest.abi}, but its binary is of abi ${abi}`,
  );
}
