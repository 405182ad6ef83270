/**
 * Where a module's bytes, and those of its manifest, come from: OCI registries, web servers, and
 * files under --module-dir.
 *
 * Owns: reading references and URLs into what is fenced and fetched, finding a module, proving which
 * bytes it is (its digest) and that whoever asks could have had them from there, the caches on disk,
 * and the words for what it could not find.
 * Never: decides whether a step may name the module (src/admission), looks inside it or runs it
 * (src/engine).
 * Who decides instead: the operator, by what lies in --module-dir and by flags.
 */
export { LoaderError, type LoaderErrorCode } from "./error.js";
export {
  createLoader,
  type Loader,
  type LoaderOptions,
  type PullContext,
  type ResolvedModule,
} from "./loader.js";
export { findModuleFile } from "./module-file.js";
export {
  createPublisher,
  type Publication,
  type Publisher,
} from "./publisher.js";
export { createSourceParsers } from "./source-parsers.js";
export {
  parseInsecureHosts,
  parseRegistryCas,
  parseTokenServers,
  type RegistryCa,
} from "./http/flag-hosts.js";
export type { PublishedModule } from "./oci/artifact.js";
export { dockerConfigFileOf } from "./oci/docker-config-file.js";
export type { InspectedArtifact } from "./oci/inspect-artifact.js";
export type { PushProgress } from "./oci/upload.js";
export type { SchemeOptions } from "./registry-scheme.js";
export { startSweeper, type Sweeper } from "./store/sweeper.js";
