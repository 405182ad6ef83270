import type { AdmissionError } from "../error.js";
import { invalid } from "../fields.js";

/**
 * Levels of objects and lists a manifest may have. What walks a manifest calls itself once a level,
 * and a stack that overflows inside a regular expression ends the process.
 */
export const maxLevels = 64;

/** The refusal of a manifest with more. */
export function tooDeep(): AdmissionError {
  return invalid(`it nests deeper than ${String(maxLevels)} levels`);
}
