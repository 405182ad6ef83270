import { readFileSync } from "node:fs";

/**
 * @param {string | undefined} file
 * @returns {string} empty when the step that writes it did not get that far
 */
export function textOf(file) {
  try {
    return file === undefined ? "" : readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
