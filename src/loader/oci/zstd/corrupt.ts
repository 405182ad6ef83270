import type { LoaderError } from "../../error.js";
import { refuse } from "../../refuse.js";

/** @param reason what is wrong, after a colon */
export function corrupt(reason: string): LoaderError {
  return refuse("artifact-invalid", `the layer's zstd data is bad: ${reason}`);
}
