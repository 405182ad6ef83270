import type { SourceParsers } from "../ports.js";
import { parseDigest } from "./digest.js";
import { parseHttpUrl } from "./http-url.js";
import { parseReference } from "./reference.js";
import { createIsPlainHttp, type SchemeOptions } from "./registry-scheme.js";

/** The parsers of what a source names, for a runtime that speaks to servers in this way. */
export function createSourceParsers(options: SchemeOptions): SourceParsers {
  const isPlainHttp = createIsPlainHttp(options);
  return {
    parseReference: (text) => parseReference(text, isPlainHttp),
    parseHttpUrl: (text) => parseHttpUrl(text, options.insecureHosts),
    parseDigest,
  };
}
