import type { SourceParsers } from "../ports.js";
import { parseDigest } from "./digest.js";
import { parseHttpUrl } from "./http-url.js";
import { parseReference } from "./reference.js";

/** The parsers of what a source names. */
export const sourceParsers: SourceParsers = {
  parseReference,
  parseHttpUrl,
  parseDigest,
};
