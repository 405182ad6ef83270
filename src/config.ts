import { availableParallelism } from "node:os";

import { Command, CommanderError, Option } from "commander";

import { quoted, WasmFunctionError } from "./errors.js";
import type { RegistryCa } from "./loader/index.js";
import {
  parseAddress,
  parseBoolean,
  parseCas,
  parseDurationMs,
  parseHostPairs,
  parseHosts,
  parseList,
  parseNanos,
  parsePath,
  parseSize,
  parseTimeoutMs,
  parseWholeNumber,
  type FlagParser,
} from "./flag-values.js";

/** One line of the flag table. */
export interface Flag {
  readonly name: string;
  /** Another spelling that is understood, but not shown. */
  readonly alias?: string;
  /** One letter. */
  readonly short?: string;
  readonly env: string;
  /** `null` = unset. */
  readonly default: string | null;
  /** What its value is; `null` = a switch. */
  readonly unit: string | null;
  readonly help: string;
  /** What commands that end by themselves say instead. */
  readonly onceHelp?: string;
  /** May be given more than once; its values are joined by commas. */
  readonly repeatable?: true;
  readonly group: "Cache" | "Limits" | "Modules" | "Policy" | "Server";
}

const kib = 1024;
const mib = 1024 * kib;
const gib = 1024 * mib;

/** Threads beyond the machine's cores only take turns. */
const maxEngineWorkers = 1_024;

/** Every flag of `serve`. A flag wins over its environment variable, that over the default. */
// prettier-ignore
export const flags = [
  { name: "address", env: "ADDRESS", default: ":9443", unit: "host:port", group: "Server", help: "where gRPC is served; :port is every address, port 0 a free one" },
  { name: "insecure", env: "INSECURE", default: "false", unit: null, group: "Server", help: "serve without TLS, whatever --tls-certs-dir says" },
  { name: "tls-certs-dir", alias: "tls-server-certs-dir", env: "TLS_SERVER_CERTS_DIR", default: null, unit: "dir", group: "Server", help: "directory of tls.crt, tls.key and ca.crt" },
  { name: "metrics-address", env: "METRICS_ADDRESS", default: ":8080", unit: "host:port", group: "Server", help: "where /metrics is served; :port is every address, port 0 a free one" },
  { name: "health-address", env: "HEALTH_ADDRESS", default: ":8081", unit: "host:port", group: "Server", help: "where /livez and /readyz are served; :port is every address, port 0 a free one" },
  { name: "max-recv-message-size", env: "MAX_RECV_MESSAGE_SIZE", default: "4", unit: "MB", group: "Server", help: "largest request" },
  { name: "max-connection-age", env: "MAX_CONNECTION_AGE", default: "10m", unit: "duration", group: "Server", help: "when a gRPC connection is asked to end, give or take a tenth, so that its client connects again and finds newer pods; 0 is never" },
  { name: "max-connection-age-grace", env: "MAX_CONNECTION_AGE_GRACE", default: "2m", unit: "duration", group: "Server", help: "how long the calls on such a connection may still take" },
  { name: "ttl", env: "TTL", default: "60s", unit: "duration", group: "Server", help: "how long Crossplane may reuse what the runtime itself answers, and answers of modules that give no meta" },
  { name: "debug", short: "d", env: "DEBUG", default: "false", unit: null, group: "Server", help: "log more, and for people instead of in JSON" },
  { name: "module-dir", env: "MODULE_DIR", default: null, unit: "dir", group: "Modules", help: "where Path modules lie; unset refuses them" },
  { name: "max-module-size", env: "MAX_MODULE_SIZE", default: "128", unit: "MB", group: "Modules", help: "largest module" },
  { name: "allow-unpinned-tags", env: "ALLOW_UNPINNED_TAGS", default: "false", unit: null, group: "Modules", help: "admit OCI references with a tag and no digest" },
  { name: "tag-resolve-interval", env: "TAG_RESOLVE_INTERVAL", default: "0s", unit: "duration", group: "Modules", help: "how long what a tag led to may be used again; 0 asks the registry for every request" },
  { name: "max-tag-staleness", env: "MAX_TAG_STALENESS", default: "1h", unit: "duration", group: "Modules", help: "how old what a tag led to may be while its registry gives no answer; 0 uses nothing old" },
  { name: "access-recheck-interval", env: "ACCESS_RECHECK_INTERVAL", default: "10m", unit: "duration", group: "Modules", help: "how long a credential that could pull a cached module may use it unasked" },
  { name: "insecure-registry", env: "INSECURE_REGISTRY", default: null, unit: "host[:port],…", repeatable: true, group: "Modules", help: "hosts that are spoken to over plain HTTP; repeatable" },
  { name: "registry-ca", env: "REGISTRY_CA", default: null, unit: "host[:port]=file,…", repeatable: true, group: "Modules", help: "certificate authorities, in PEM, that are trusted for one host besides those that come with Node; repeatable" },
  { name: "registry-token-server", env: "REGISTRY_TOKEN_SERVER", default: null, unit: "host[:port]=host[:port],…", repeatable: true, group: "Modules", help: "a registry and the host it may send to for tokens, where that is not its own, as with GitLab; repeatable" },
  { name: "warm-modules", env: "WARM_MODULES", default: null, unit: "ref,…", repeatable: true, group: "Modules", help: "modules loaded before the runtime is ready: OCI references with a digest, path:<file>; repeatable" },
  { name: "sandbox-policy-file", env: "SANDBOX_POLICY_FILE", default: null, unit: "file", group: "Policy", help: "the operator's Cedar policy, read again when it changes and on SIGHUP; unset grants no module anything", onceHelp: "the operator's Cedar policy; unset grants no module anything" },
  { name: "module-timeout", env: "MODULE_TIMEOUT", default: "30s", unit: "duration", group: "Limits", help: "ceiling of an Input's limits.timeout" },
  { name: "module-memory-limit", env: "MODULE_MEMORY_LIMIT", default: "512", unit: "MB", group: "Limits", help: "ceiling of an Input's limits.memory" },
  { name: "module-stack-limit", env: "MODULE_STACK_LIMIT", default: "512", unit: "KB", group: "Limits", help: "stack of a run" },
  { name: "max-concurrent-runs", env: "MAX_CONCURRENT_RUNS", default: "0", unit: "n", group: "Limits", help: "runs at once; 0 is as many as the memory pool has room for, 256" },
  { name: "max-total-run-memory", env: "MAX_TOTAL_RUN_MEMORY", default: "0", unit: "MB", group: "Limits", help: "memory of all runs together; 0 is unbounded" },
  { name: "max-concurrent-compiles", env: "MAX_CONCURRENT_COMPILES", default: "1", unit: "n", group: "Limits", help: "large modules compiled at once" },
  { name: "engine-workers", env: "ENGINE_WORKERS", default: null, unit: "n", group: "Limits", help: "threads that run modules; unset is one less than there are cores" },
  { name: "enable-memory-cache", env: "ENABLE_MEMORY_CACHE", default: "true", unit: null, group: "Cache", help: "keep a compiled module in memory for ten minutes after it ran; with --no-enable-memory-cache it goes when nothing runs it, and comes back from --cache-dir" },
  { name: "max-cached-modules", env: "MAX_CACHED_MODULES", default: "0", unit: "n", group: "Cache", help: "compiled modules kept in memory; 0 is unbounded" },
  { name: "cache-dir", env: "CACHE_DIR", default: "/tmp/function-wasm-cache", unit: "dir", group: "Cache", help: "where modules, manifests and compiled modules are kept" },
  { name: "max-cache-size", env: "MAX_CACHE_SIZE", default: "0", unit: "MB", group: "Cache", help: "what --cache-dir may hold before the least recently used goes; 0 is unbounded" },
  { name: "artifact-key-file", env: "ARTIFACT_KEY_FILE", default: null, unit: "file", group: "Cache", help: "key that authenticates compiled modules across restarts" },
  { name: "trust-cache-dir", env: "TRUST_CACHE_DIR", default: "false", unit: null, group: "Cache", help: "use compiled modules of earlier processes without a key" },
] as const satisfies readonly Flag[];

/** The flags, read and checked. Sizes in bytes, times in milliseconds. */
export interface Config {
  readonly address: { readonly host: string | null; readonly port: number };
  readonly insecure: boolean;
  readonly tlsCertsDir: string | null;
  readonly metricsAddress: {
    readonly host: string | null;
    readonly port: number;
  };
  readonly healthAddress: {
    readonly host: string | null;
    readonly port: number;
  };
  readonly debug: boolean;
  readonly maxReceiveBytes: number;
  /** 0 = never. */
  readonly maxConnectionAgeMs: number;
  readonly maxConnectionAgeGraceMs: number;
  readonly ttlNanos: bigint;
  /** Absolute. */
  readonly moduleDir: string | null;
  readonly maxModuleBytes: number;
  readonly allowUnpinnedTags: boolean;
  readonly tagResolveIntervalMs: number;
  readonly maxTagStalenessMs: number;
  readonly accessRecheckIntervalMs: number;
  /** Each `host` or `host:port`. */
  readonly insecureRegistries: readonly string[];
  readonly registryCas: readonly RegistryCa[];
  /** By registry. */
  readonly tokenServers: ReadonlyMap<string, string>;
  readonly warmModules: readonly string[];
  /** Absolute. */
  readonly sandboxPolicyFile: string | null;
  readonly moduleTimeoutMs: number;
  /** In the operator's own notation. */
  readonly moduleTimeoutText: string;
  readonly moduleMemoryBytes: number;
  /** As a Kubernetes quantity. */
  readonly moduleMemoryText: string;
  readonly moduleStackBytes: number;
  /** 0 = unbounded. */
  readonly maxConcurrentRuns: number;
  /** 0 = unbounded. */
  readonly maxTotalRunMemoryBytes: number;
  readonly maxConcurrentCompiles: number;
  readonly engineWorkers: number;
  readonly enableMemoryCache: boolean;
  /** 0 = unbounded. */
  readonly maxCachedModules: number;
  /** Absolute. */
  readonly cacheDir: string;
  /** 0 = unbounded. */
  readonly maxCacheBytes: number;
  readonly artifactKeyFile: string | null;
  readonly trustCacheDir: boolean;
}

/** Thrown when a flag or variable cannot be honoured; the process must not start. */
export class ConfigError extends WasmFunctionError<"flag-invalid"> {
  override readonly name = "ConfigError";
}

/** What the environment says; an empty variable counts as unset. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The configuration that a command line (without program and command) and environment ask for.
 * @throws ConfigError flag-invalid
 */
export function compileConfig(
  argv: readonly string[],
  env: Environment,
): Config {
  const command = addFlags(new Command())
    .exitOverride()
    .configureOutput({ writeErr: () => undefined });
  try {
    command.parse(argv, { from: "user" });
  } catch (thrown) {
    if (!(thrown instanceof CommanderError)) throw thrown;
    const message = thrown.message.replace(/^error: /, "");
    throw new ConfigError("flag-invalid", message, { cause: thrown });
  }
  return configFrom(command, env);
}

/** The name of a flag, without its dashes. */
export type FlagName = (typeof flags)[number]["name"];

const allNames: readonly FlagName[] = flags.map(({ name }) => name);

/**
 * Declares the flags of the table on a command: all of them, as `serve` has them, or those named, of
 * a command that ends by itself. A switch may be given as `--name`, `--no-name` and, like in Go,
 * `--name=false`, but never as `--name false`; the last one wins.
 */
export function addFlags(
  command: Command,
  names: readonly FlagName[] = allNames,
): Command {
  const declared: readonly Flag[] = flags.filter(({ name }) =>
    names.includes(name),
  );
  for (const flag of declared) {
    const short = flag.short === undefined ? "" : `-${flag.short}, `;
    const value = flag.unit === null ? "" : ` <${flag.unit}>`;
    const shown = flag.default === null ? "" : `, default ${flag.default}`;
    const once = names === allNames ? undefined : flag.onceHelp;
    const help = `${once ?? flag.help} (${flag.env}${shown})`;
    // Also those that are not shown: the help has its groups in the order in which they come up.
    const add = (text: string, description?: string) => {
      const option = new Option(text, description);
      if (description === undefined) option.hideHelp();
      if (flag.repeatable) option.argParser(joined);
      command.addOption(option.helpGroup(`${flag.group}:`));
    };
    add(`${short}--${flag.name}${value}`, help);
    if (flag.unit === null) add(`--no-${flag.name}`);
    if (flag.alias !== undefined) add(`--${flag.alias}${value}`);
  }
  readSwitchValues(command, declared);
  return command;
}

/** Has a command take `--name=true` and `--name=false` for `--name` and `--no-name`. */
function readSwitchValues(command: Command, declared: readonly Flag[]): void {
  const names = new Map<string, string>();
  for (const { name, short, unit } of declared) {
    if (unit !== null) continue;
    names.set(`--${name}`, name);
    if (short !== undefined) names.set(`-${short}`, name);
  }
  const spelled = (argument: string): string => {
    const [option = "", ...rest] = argument.split("=");
    const name = names.get(option);
    if (name === undefined || rest.length === 0) return argument;
    const text = rest.join("=");
    const value = parseBoolean(text);
    if (value.kind === "ok") return `--${value.value ? "" : "no-"}${name}`;
    throw refusal(`--${name}`, value.expected, text);
  };
  const parseOptions = command.parseOptions.bind(command);
  command.parseOptions = (argv) => {
    const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
    return parseOptions([
      ...argv.slice(0, end).map(spelled),
      ...argv.slice(end),
    ]);
  };
}

/**
 * The configuration that a parsed command with {@link addFlags} and environment ask for.
 * @param names the flags it has; every other one is at its default, whatever its variable says
 * @throws ConfigError flag-invalid
 */
export function configFrom(
  command: Command,
  env: Environment,
  names: readonly FlagName[] = allNames,
): Config {
  const optional = <T>(name: FlagName, parse: FlagParser<T>): T | null =>
    readFlag(name, parse, command, names.includes(name) ? env : {});
  const required = <T>(name: FlagName, parse: FlagParser<T>): T =>
    optional(name, parse) ?? throwUnset(name);
  const unboundedOrSize = parseSize("MB", {
    minBytes: mib,
    maxBytes: 1024 * gib,
    orZero: true,
  });
  const timeout = required("module-timeout", parseTimeoutMs);
  const memory = required(
    "module-memory-limit",
    parseSize("MB", { minBytes: 64 * kib, maxBytes: 64 * gib }),
  );
  return Object.freeze<Config>({
    address: Object.freeze(required("address", parseAddress)),
    insecure: required("insecure", parseBoolean),
    tlsCertsDir: optional("tls-certs-dir", parsePath),
    metricsAddress: Object.freeze(required("metrics-address", parseAddress)),
    healthAddress: Object.freeze(required("health-address", parseAddress)),
    debug: required("debug", parseBoolean),
    maxReceiveBytes: required(
      "max-recv-message-size",
      parseSize("MB", { minBytes: mib, maxBytes: 2047 * mib }),
    ).bytes,
    maxConnectionAgeMs: required("max-connection-age", parseDurationMs),
    maxConnectionAgeGraceMs: required(
      "max-connection-age-grace",
      parseDurationMs,
    ),
    ttlNanos: required("ttl", parseNanos),
    moduleDir: optional("module-dir", parsePath),
    maxModuleBytes: required(
      "max-module-size",
      parseSize("MB", { minBytes: kib, maxBytes: 2047 * mib }),
    ).bytes,
    allowUnpinnedTags: required("allow-unpinned-tags", parseBoolean),
    tagResolveIntervalMs: required("tag-resolve-interval", parseDurationMs),
    maxTagStalenessMs: required("max-tag-staleness", parseDurationMs),
    accessRecheckIntervalMs: required(
      "access-recheck-interval",
      parseDurationMs,
    ),
    insecureRegistries: Object.freeze(
      optional("insecure-registry", parseHosts) ?? [],
    ),
    registryCas: Object.freeze(optional("registry-ca", parseCas) ?? []),
    tokenServers:
      optional("registry-token-server", parseHostPairs) ??
      new Map<string, string>(),
    warmModules: Object.freeze(optional("warm-modules", parseList) ?? []),
    sandboxPolicyFile: optional("sandbox-policy-file", parsePath),
    moduleTimeoutMs: timeout.ms,
    moduleTimeoutText: timeout.text,
    moduleMemoryBytes: memory.bytes,
    moduleMemoryText: memory.text,
    moduleStackBytes: required(
      "module-stack-limit",
      parseSize("KB", { minBytes: 64 * kib, maxBytes: 64 * mib }),
    ).bytes,
    maxConcurrentRuns: required("max-concurrent-runs", parseWholeNumber(0)),
    maxTotalRunMemoryBytes: required("max-total-run-memory", unboundedOrSize)
      .bytes,
    maxConcurrentCompiles: required(
      "max-concurrent-compiles",
      parseWholeNumber(1),
    ),
    engineWorkers:
      optional("engine-workers", parseWholeNumber(1, maxEngineWorkers)) ??
      Math.max(1, availableParallelism() - 1),
    enableMemoryCache: required("enable-memory-cache", parseBoolean),
    maxCachedModules: required("max-cached-modules", parseWholeNumber(0)),
    cacheDir: required("cache-dir", parsePath),
    maxCacheBytes: required("max-cache-size", unboundedOrSize).bytes,
    artifactKeyFile: optional("artifact-key-file", parsePath),
    trustCacheDir: required("trust-cache-dir", parseBoolean),
  });
}

/**
 * What follows a flag's name in messages: ` (MODULE_DIR)`, its variable, unless its value is from the
 * command line.
 */
export function originOf(name: FlagName, command: Command): string {
  const flag = findFlag(name);
  if (flag === undefined || givenText(flag, command) !== undefined) return "";
  return ` (${flag.env})`;
}

/** `null` when neither command line, environment nor table has a value. */
function readFlag<T>(
  name: FlagName,
  parse: FlagParser<T>,
  command: Command,
  env: Environment,
): T | null {
  const flag = findFlag(name);
  if (flag === undefined) return throwUnset(name);
  const text =
    givenText(flag, command) ?? nonEmpty(env[flag.env]) ?? flag.default;
  if (text === null) return null;
  const result = parse(text);
  if (result.kind === "ok") return result.value;
  throw refusal(`--${name}${originOf(name, command)}`, result.expected, text);
}

function findFlag(name: FlagName): Flag | undefined {
  return flags.find((each) => each.name === name);
}

/** What the command line says, under either name. */
function givenText(
  { name, alias }: Flag,
  command: Command,
): string | undefined {
  return optionText(command, name) ?? optionText(command, alias);
}

function refusal(flag: string, expected: string, text: string): ConfigError {
  return new ConfigError(
    "flag-invalid",
    `${flag}: expected ${expected}, got ${quoted(text)}`,
  );
}

/** A switch is as if its text had been given. */
function optionText(
  command: Command,
  name: string | undefined,
): string | undefined {
  if (name === undefined) return undefined;
  const attribute = name.replace(/-(.)/g, (_, letter: string) =>
    letter.toUpperCase(),
  );
  const value: unknown = command.getOptionValue(attribute);
  if (typeof value === "boolean") return String(value);
  return typeof value === "string" ? value : undefined;
}

function joined(value: string, before: string | undefined): string {
  return before === undefined ? value : `${before},${value}`;
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}

function throwUnset(name: string): never {
  throw new ConfigError("flag-invalid", `--${name} has no value`);
}
