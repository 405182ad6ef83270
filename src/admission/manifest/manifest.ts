import type { JsonValue } from "../json.js";

/** HTTP methods a manifest may ask for. */
export const egressMethods = [
  "GET",
  "HEAD",
  "POST",
  "PUT",
  "PATCH",
  "DELETE",
  "OPTIONS",
] as const;

export type EgressMethod = (typeof egressMethods)[number];

/** One rule of `requires.egress.http`. */
export interface EgressRule {
  /**
   * As a URL parser writes it: a host in lower case without trailing dot, an IPv4 literal, an IPv6
   * literal without brackets, or `*.domain`.
   */
  readonly host: string;
  readonly methods: readonly EgressMethod[];
  /** "" when it has none. */
  readonly pathPrefix: string;
  readonly scheme: "http" | "https";
  readonly port: number;
}

/** One binding of `requires.env`. */
export interface EnvBinding {
  readonly name: string;
  /** A step credential, and one key of it. */
  readonly credential: string;
  readonly key: string;
}

/** What a module cannot run without. */
export interface Requirements {
  readonly egress: readonly EgressRule[];
  readonly privateTmp: boolean;
  readonly env: readonly EnvBinding[];
  /** Step credentials it reads whole from its request. */
  readonly credentials: readonly string[];
}

/** A module's manifest (`wasmfn.yaml`). Frozen. */
export interface ModuleManifest {
  readonly name: string | null;
  /** Semantic version. */
  readonly version: string | null;
  readonly abi: 1 | 2;
  readonly source: string | null;
  /** Semantic version without `v`. */
  readonly minRuntime: string | null;
  readonly requires: Requirements;
  /** Judges a step's `config`; null when the manifest has no schema. */
  readonly configSchema: ConfigSchema | null;
}

/** A compiled `config.schema`. */
export interface ConfigSchema {
  /**
   * What is wrong with `config` (an absent one is `{}`), for example
   * `/greeting: got number, want string`; null when nothing is. One line, bounded time.
   */
  check(config: JsonValue): string | null;
}
