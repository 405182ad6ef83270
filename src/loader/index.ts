/**
 * Where a module's bytes, and those of its manifest, come from: files under --module-dir.
 *
 * Owns: reading references and URLs into what is fenced and fetched, finding a module, proving which
 * bytes it is (its digest), and the words for what it could not find.
 * Never: decides whether a step may name the module (src/admission), looks inside it or runs it
 * (src/engine).
 * Who decides instead: the operator, by what lies in --module-dir and by --max-module-size.
 */
export { LoaderError, type LoaderErrorCode } from "./error.js";
export { createLoader, type Loader, type LoaderOptions } from "./loader.js";
export { sourceParsers } from "./source-parsers.js";
