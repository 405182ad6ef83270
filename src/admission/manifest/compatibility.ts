import semver from "semver";

/**
 * Our compatibility level: the release of function-wasm whose modules and Inputs run here
 * unchanged. A manifest's `minRuntime` is compared with it.
 */
export const runtimeCompatibility = "1.0.0";

/**
 * Whether a module needs a newer runtime than this.
 * @param minRuntime semantic version without `v`
 */
export function isRuntimeTooOld(minRuntime: string): boolean {
  return semver.gt(minRuntime, runtimeCompatibility);
}
