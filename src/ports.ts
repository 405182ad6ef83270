/**
 * Types that more than one folder needs, and the seams through which the outside world comes in.
 * A leaf: it imports nothing and holds no behaviour.
 */

/** Structured log sink. Messages are static; what varies goes into `fields`. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
  /** A logger that adds `fields` to every line. */
  child(fields: LogFields): Logger;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Milliseconds, as from `Date.now()` (`nowMs`) and `performance.now()` (`monotonicMs`). */
export interface Clock {
  nowMs(): number;
  monotonicMs(): number;
}

/** `sha256:` and 64 lower-case hex digits. */
export type Digest = `sha256:${string}`;

/**
 * A module whose bytes are known by digest and lie in a regular file on this machine. The loader
 * makes it, the engine compiles it. The file may change under us, so whoever reads it hashes what
 * it read and compares.
 */
export interface ModuleFile {
  readonly digest: Digest;
  /** Absolute path of a regular file. */
  readonly filePath: string;
  readonly sizeBytes: number;
  /** What messages call it, for example `Path greeter.wasm`. Already escaped, one line. */
  readonly description: string;
}

/** A module that is known by its digest; its bytes may still be elsewhere. */
export interface FoundModule {
  readonly digest: Digest;
  /** As in {@link ModuleFile.description}. */
  readonly description: string;
  /**
   * The file of its bytes, fetched first where it must be, which may take minutes and has a time
   * budget of its own. Rejects with an error whose message names the module.
   */
  locate(): Promise<ModuleFile>;
}

/** When work must have ended, and whether its caller has gone. */
export interface RequestScope {
  /** On `Clock.monotonicMs`; `Infinity` when the caller set no deadline. */
  readonly deadlineAtMs: number;
  /** Made when first asked for, which costs more than all the rest here. */
  readonly signal: AbortSignal;
  readonly cancelled: boolean;
  /**
   * Calls `listener` once when the caller goes away; returns how to unsubscribe. A caller that has
   * gone already does not go again: look at `cancelled` first.
   */
  onCancel(listener: () => void): () => void;
}

/** What a step may use, after the operator's ceilings were applied. */
export interface RunLimits {
  /** Guest compute, host waits not counted. */
  readonly timeoutMs: number;
  /** All linear memories and tables of the run together. */
  readonly memoryBytes: number;
  /** Runs of this step at once; `null` = no bound of its own. */
  readonly concurrency: number | null;
}

/** What a parser makes of text: ordinary bad input is no exception. */
export type Parsed<T> =
  | { readonly kind: "ok"; readonly value: T }
  /** `message` says what was found and what was expected; the caller puts the field before it. */
  | { readonly kind: "error"; readonly message: string };

/** An OCI reference in its canonical form; nothing downstream of the parser sees other text. */
export interface OciReference {
  /** Lower case, without default port; `index.docker.io` for Docker Hub. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string | null;
  readonly digest: Digest | null;
  /** `registry/repository`: what every fence sees. */
  readonly location: string;
  /** `registry/repository[:tag][@digest]`. */
  readonly text: string;
}

/** An http or https URL as a WHATWG parser normalises it, without user info and fragment. */
export interface HttpUrl {
  /** What is fetched; it may have a query, which may be a secret. */
  readonly href: string;
  /** `scheme://host[:port]/path`: what every fence sees and every message shows. */
  readonly location: string;
}

/** Where a step's module comes from, as the Input or the XR names it. */
export type ModuleSource =
  | {
      readonly type: "Path";
      readonly path: string;
      /** From the Input only. */
      readonly manifestPath: string | null;
    }
  | {
      readonly type: "OCI";
      readonly ref: OciReference;
      /** What a tag must resolve to; equal to the digest of a pinned reference. Input only. */
      readonly expectedDigest: Digest | null;
      /** Name of the step credential to pull with; never reaches the module. */
      readonly credentials: string | null;
    }
  | {
      readonly type: "HTTP";
      readonly url: HttpUrl;
      readonly digest: Digest;
      readonly manifest: {
        readonly url: HttpUrl;
        readonly digest: Digest;
      } | null;
    };

/** Turns a source's text into what is fenced and fetched; `src/loader` has the only ones. */
export interface SourceParsers {
  parseReference(text: string): Parsed<OciReference>;
  parseHttpUrl(text: string): Parsed<HttpUrl>;
  parseDigest(text: string): Parsed<Digest>;
}

/** Where redirects of a module's URL may lead, when the composite resource chose that URL. */
export interface RedirectFence {
  /** Equal for fences that judge alike. */
  readonly key: string;
  /** Throws to refuse. */
  admit(url: HttpUrl): Promise<void>;
}

/** Something to say beside an answer, once. */
export interface Warning {
  /** One line. */
  readonly text: string;
  /** To be called when it was said; until then the next one who asks is told, too. */
  said(): void;
}

/** A module's manifest as its source delivered it. */
export interface ManifestBytes {
  /** A `wasmfn.yaml`, read strictly, or the JSON of an OCI layer, in which newer fields are ignored. */
  readonly form: "file" | "layer";
  readonly bytes: Uint8Array;
  readonly digest: Digest;
}

/** A variable of a run's environment. */
export interface EnvVariable {
  readonly name: string;
  /** Often a secret. */
  readonly value: string;
}

/** How a request ended: `refused` by admission, `error` for everything else that is no answer. */
export type RequestOutcome = "ok" | "refused" | "error" | "skipped";

/** How a run ended: `timeout` when it was cut, for its time was up or its caller had gone. */
export type RunOutcome = "ok" | "error" | "timeout";

/**
 * What said which digest a tag leads to: the registry; what it led to last, because nobody answered;
 * the step's expectation in such a case, or an answer that was used again.
 */
export type TagResolutionSource = "registry" | "pointer" | "cache";

/** How a look into a cache ended, and that what was there, `stale`, was not what its name says. */
export type CacheEvent = "hit" | "miss" | "stale";

/** What refused memory: the run's own limit, or the bound on all runs together. */
export type MemoryDenialReason = "limit" | "pool";

/**
 * What a client was refused for: it showed no certificate; one that no authority vouches for with a
 * key and signature worth something, one out of its dates, or one that is not for clients; it does not accept the server's; it does not
 * offer HTTP/2; or the TLS handshake failed in another way.
 */
export type ClientRefusal =
  | "no-certificate"
  | "untrusted"
  | "expired"
  | "not-for-clients"
  | "distrusts-us"
  | "no-http2"
  | "handshake";

/** What is counted. Labels are constants: no module, host or digest. */
export interface Metrics {
  requestEnded(outcome: RequestOutcome): void;
  /** The bytes of a module came from `source`; those of a file were read and hashed. */
  moduleFetched(source: "oci" | "http" | "path", seconds: number): void;
  tagResolved(source: TagResolutionSource): void;
  blobLookedUp(event: CacheEvent): void;
  /** Somebody looked for a compiled module in memory. */
  compiledLookedUp(event: "hit" | "miss"): void;
  /** Somebody looked for a compiled module on disk. */
  artifactLookedUp(event: CacheEvent): void;
  /** What lies on disk, after the sweep that looked. */
  cacheSwept(cache: "blob" | "compiled-disk", bytes: number): void;
  /** The compiler is done with a module, whether it compiled or not. */
  compileEnded(seconds: number): void;
  /** A compiled module was brought into memory. */
  moduleLoaded(abi: 1 | 2): void;
  /** A run has its slot, or has given up waiting for one. */
  runQueued(seconds: number): void;
  /** How many runs hold a slot now. */
  runsInFlight(count: number): void;
  /** The sandbox is done with a run. */
  runEnded(outcome: RunOutcome, seconds: number): void;
  /** Runs were refused memory `count` times. */
  memoryDenied(reason: MemoryDenialReason, count: number): void;
  /** The operator policy was read again. */
  policyReloaded(result: "ok" | "error"): void;
  /** The server's certificates were read again. */
  certificatesReloaded(result: "ok" | "error"): void;
  /** A connection was closed before it came to a call. */
  clientRefused(refusal: ClientRefusal): void;
}
