import semver from "semver";

import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

/** Reads a semantic version, with or without `v` before it, as one without. */
export function parseVersion(text: string): Parsed<string> {
  const version = text.replace(/^v/u, "");
  // semver also takes blanks and `=` around a version.
  if (/^\d.*[\dA-Za-z-]$/u.test(version) && semver.valid(version) !== null)
    return { kind: "ok", value: version };
  return {
    kind: "error",
    message: `expected a semantic version such as "1.2.3", got ${quoted(text)}`,
  };
}
