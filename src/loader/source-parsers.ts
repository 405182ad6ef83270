import type { SourceParsers } from "../ports.js";
import { parseDigest } from "./digest.js";
import { parseHttpUrl } from "./http-url.js";
import { parseReference, PINNED_FORM } from "./reference.js";
import { createIsPlainHttp, type SchemeOptions } from "./registry-scheme.js";

/**
 * The parsers of what a source names, for a runtime that speaks to servers in this way.
 * @param referenceForm what messages say is expected of a reference
 */
export function createSourceParsers(
  options: SchemeOptions,
  referenceForm = PINNED_FORM,
): SourceParsers {
  const isPlainHttp = createIsPlainHttp(options);
  return {
    parseReference: (text) => parseReference(text, isPlainHttp, referenceForm),
    parseHttpUrl: (text) => parseHttpUrl(text, options.insecureHosts),
    parseDigest,
  };
}
