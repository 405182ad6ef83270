import { Command } from "commander";
import { describe, expect, it } from "vitest";

import {
  addFlags,
  compileConfig,
  ConfigError,
  flags,
} from "../../src/config.js";

const mib = 1024 * 1024;

describe("config", () => {
  it("has a default for everything", () => {
    const { engineWorkers, ...config } = compileConfig([], {});

    expect(config).toEqual({
      address: { host: null, port: 9443 },
      insecure: false,
      tlsCertsDir: null,
      metricsAddress: { host: null, port: 8080 },
      healthAddress: { host: null, port: 8081 },
      debug: false,
      maxReceiveBytes: 4 * mib,
      maxConnectionAgeMs: 600_000,
      maxConnectionAgeGraceMs: 120_000,
      ttlNanos: 60_000_000_000n,
      moduleDir: null,
      maxModuleBytes: 128 * mib,
      allowUnpinnedTags: false,
      tagResolveIntervalMs: 0,
      maxTagStalenessMs: 3_600_000,
      accessRecheckIntervalMs: 600_000,
      insecureRegistries: [],
      registryCas: [],
      tokenServers: new Map(),
      warmModules: [],
      sandboxPolicyFile: null,
      moduleTimeoutMs: 30_000,
      moduleTimeoutText: "30s",
      moduleMemoryBytes: 512 * mib,
      moduleMemoryText: "512Mi",
      moduleStackBytes: 512 * 1024,
      maxConcurrentRuns: 0,
      maxTotalRunMemoryBytes: 0,
      maxConcurrentCompiles: 1,
      enableMemoryCache: true,
      maxCachedModules: 0,
      cacheDir: "/tmp/function-wasm-cache",
      maxCacheBytes: 0,
      artifactKeyFile: null,
      trustCacheDir: false,
    });
    expect(engineWorkers).toBeGreaterThanOrEqual(1);
  });

  it("takes a repeatable flag more than once", () => {
    const argv = [
      "--insecure-registry",
      "a.example",
      "--insecure-registry",
      "b.example,c.example",
    ];

    expect(compileConfig(argv, {}).insecureRegistries).toEqual([
      "a.example",
      "b.example",
      "c.example",
    ]);
  });

  it("cannot be changed", () => {
    const config = compileConfig([], {});

    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.address)).toBe(true);
    expect(Object.isFrozen(config.metricsAddress)).toBe(true);
    expect(Object.isFrozen(config.healthAddress)).toBe(true);
  });

  const rows = [
    {
      flag: "address",
      text: "localhost:0",
      key: "address",
      want: { host: "localhost", port: 0 },
    },
    {
      flag: "address",
      text: "[::1]:9443",
      key: "address",
      want: { host: "::1", port: 9443 },
    },
    {
      flag: "address",
      text: "0.0.0.0:65535",
      key: "address",
      want: { host: "0.0.0.0", port: 65535 },
    },
    {
      flag: "metrics-address",
      text: "127.0.0.1:0",
      key: "metricsAddress",
      want: { host: "127.0.0.1", port: 0 },
    },
    {
      flag: "health-address",
      text: ":0",
      key: "healthAddress",
      want: { host: null, port: 0 },
    },
    {
      flag: "tag-resolve-interval",
      text: "1.5s",
      key: "tagResolveIntervalMs",
      want: 1500,
    },
    {
      flag: "max-tag-staleness",
      text: "0",
      key: "maxTagStalenessMs",
      want: 0,
    },
    {
      flag: "access-recheck-interval",
      text: "1h",
      key: "accessRecheckIntervalMs",
      want: 3_600_000,
    },
    {
      flag: "insecure-registry",
      text: "Reg.example:5000, other.example",
      key: "insecureRegistries",
      want: ["reg.example:5000", "other.example"],
    },
    {
      flag: "registry-ca",
      text: "reg.example=/ca.pem,[::1]:5000=/b=c.pem",
      key: "registryCas",
      want: [
        { host: "reg.example", file: "/ca.pem" },
        { host: "[::1]:5000", file: "/b=c.pem" },
      ],
    },
    {
      flag: "registry-token-server",
      text: "Registry.example=gitlab.example:8443",
      key: "tokenServers",
      want: new Map([["registry.example", "gitlab.example:8443"]]),
    },
    {
      flag: "warm-modules",
      text: "path:a.wasm, ghcr.io/a/b@sha256:0",
      key: "warmModules",
      want: ["path:a.wasm", "ghcr.io/a/b@sha256:0"],
    },
    {
      flag: "max-cache-size",
      text: "2Gi",
      key: "maxCacheBytes",
      want: 2048 * mib,
    },
    {
      flag: "sandbox-policy-file",
      text: "/policy.cedar",
      key: "sandboxPolicyFile",
      want: "/policy.cedar",
    },
    { flag: "tls-certs-dir", text: "/tls", key: "tlsCertsDir", want: "/tls" },
    {
      flag: "max-recv-message-size",
      text: "16",
      key: "maxReceiveBytes",
      want: 16 * mib,
    },
    {
      flag: "max-connection-age",
      text: "30m",
      key: "maxConnectionAgeMs",
      want: 1_800_000,
    },
    {
      flag: "max-connection-age",
      text: "0",
      key: "maxConnectionAgeMs",
      want: 0,
    },
    {
      flag: "max-connection-age-grace",
      text: "1s",
      key: "maxConnectionAgeGraceMs",
      want: 1_000,
    },
    { flag: "ttl", text: "1m0.5s", key: "ttlNanos", want: 60_500_000_000n },
    { flag: "ttl", text: "0", key: "ttlNanos", want: 0n },
    {
      flag: "module-dir",
      text: "/modules/",
      key: "moduleDir",
      want: "/modules",
    },
    {
      flag: "max-module-size",
      text: "1Gi",
      key: "maxModuleBytes",
      want: 1024 * mib,
    },
    { flag: "module-timeout", text: "1500us", key: "moduleTimeoutMs", want: 2 },
    {
      flag: "module-timeout",
      text: "1m30s",
      key: "moduleTimeoutText",
      want: "1m30s",
    },
    {
      flag: "module-memory-limit",
      text: "64",
      key: "moduleMemoryBytes",
      want: 64 * mib,
    },
    {
      flag: "module-memory-limit",
      text: "64",
      key: "moduleMemoryText",
      want: "64Mi",
    },
    {
      flag: "module-memory-limit",
      text: "0.5Gi",
      key: "moduleMemoryBytes",
      want: 512 * mib,
    },
    {
      flag: "module-memory-limit",
      text: "0.5Gi",
      key: "moduleMemoryText",
      want: "0.5Gi",
    },
    {
      flag: "module-memory-limit",
      text: "100M",
      key: "moduleMemoryBytes",
      want: 100_000_000,
    },
    {
      flag: "module-stack-limit",
      text: "1024",
      key: "moduleStackBytes",
      want: mib,
    },
    {
      flag: "module-stack-limit",
      text: "2Mi",
      key: "moduleStackBytes",
      want: 2 * mib,
    },
    {
      flag: "max-concurrent-runs",
      text: "8",
      key: "maxConcurrentRuns",
      want: 8,
    },
    {
      flag: "max-total-run-memory",
      text: "2048",
      key: "maxTotalRunMemoryBytes",
      want: 2048 * mib,
    },
    {
      flag: "max-concurrent-compiles",
      text: "2",
      key: "maxConcurrentCompiles",
      want: 2,
    },
    { flag: "engine-workers", text: "3", key: "engineWorkers", want: 3 },
    {
      flag: "max-cached-modules",
      text: "50",
      key: "maxCachedModules",
      want: 50,
    },
    { flag: "cache-dir", text: "/cache", key: "cacheDir", want: "/cache" },
    {
      flag: "artifact-key-file",
      text: "/key",
      key: "artifactKeyFile",
      want: "/key",
    },
  ] as const;

  const envOf = (name: string): string =>
    flags.find((flag) => flag.name === name)?.env ?? "";

  it.each(rows)("reads --$flag $text as $want", ({ flag, text, key, want }) => {
    expect(compileConfig([`--${flag}`, text], {})[key]).toEqual(want);
    expect(compileConfig([`--${flag}=${text}`], {})[key]).toEqual(want);
    expect(compileConfig([], { [envOf(flag)]: text })[key]).toEqual(want);
  });

  const switches = [
    { flag: "insecure", key: "insecure" },
    { flag: "debug", key: "debug" },
    { flag: "allow-unpinned-tags", key: "allowUnpinnedTags" },
    { flag: "enable-memory-cache", key: "enableMemoryCache" },
    { flag: "trust-cache-dir", key: "trustCacheDir" },
  ] as const;

  it.each(switches)("reads the switch --$flag", ({ flag, key }) => {
    const env = envOf(flag);

    expect(compileConfig([`--${flag}`], {})[key]).toBe(true);
    for (const text of ["true", "1", "T"]) {
      expect(compileConfig([], { [env]: text })[key]).toBe(true);
      expect(compileConfig([`--no-${flag}`], { [env]: text })[key]).toBe(false);
    }
    for (const text of ["false", "0", "F"]) {
      expect(compileConfig([], { [env]: text })[key]).toBe(false);
      expect(compileConfig([`--${flag}`], { [env]: text })[key]).toBe(true);
    }
  });

  const booleans = [
    ...["1", "t", "T", "true", "TRUE", "True"].map((text) => [text, true]),
    ...["0", "f", "F", "false", "FALSE", "False"].map((text) => [text, false]),
  ] as [string, boolean][];

  it.each(switches)("reads --$flag=true and =false, as in Go", (row) => {
    const { flag, key } = row;
    for (const [text, want] of booleans) {
      const argv = [`--${flag}=${text}`];

      expect(compileConfig(argv, {})[key], text).toBe(want);
      expect(compileConfig(argv, { [envOf(flag)]: String(!want) })[key]).toBe(
        want,
      );
    }
    for (const text of ["maybe", "", "yes", "true=1", "FaLSE"]) {
      const compile = () => compileConfig([`--${flag}=${text}`], {});

      expect(compile).toThrow(ConfigError);
      expect(compile).toThrow(
        `--${flag}: expected true or false, got "${text}"`,
      );
    }
  });

  it.each([
    { argv: ["--debug", "--debug=false"], want: false },
    { argv: ["--debug=false", "--debug"], want: true },
    { argv: ["--no-debug", "--debug=true"], want: true },
    { argv: ["--debug=true", "--no-debug"], want: false },
    { argv: ["--debug=false", "--debug=true"], want: true },
    { argv: ["--no-debug", "--debug"], want: true },
    { argv: ["-d", "-d=false"], want: false },
    { argv: ["-d=1"], want: true },
  ])("lets the last switch of $argv win", ({ argv, want }) => {
    expect(compileConfig(argv, {}).debug).toBe(want);
  });

  it.each(switches)("never takes an argument for --$flag's value", (row) => {
    for (const argv of [
      [`--${row.flag}`, "false"],
      [`--no-${row.flag}`, "true"],
    ]) {
      expect(() => compileConfig(argv, {})).toThrow("too many arguments");
    }
  });

  it("leaves what follows -- as it is", () => {
    const command = addFlags(new Command().argument("<files...>"));

    command.parse(["--debug=false", "--", "--debug=true"], { from: "user" });

    expect(command.args).toEqual(["--debug=true"]);
    expect(command.opts()).toEqual({ debug: false });
  });

  it.each(switches)("takes an empty variable of --$flag for none", (row) => {
    const env = { [envOf(row.flag)]: "" };

    expect(compileConfig([], env)[row.key]).toBe(
      compileConfig([], {})[row.key],
    );
  });

  it("tests every flag of the table", () => {
    const tested = new Set<string>([...rows, ...switches].map((r) => r.flag));

    expect(
      flags.map((flag) => flag.name).filter((n) => !tested.has(n)),
    ).toEqual([]);
  });

  it("prefers the flag to the environment, and that to the default", () => {
    const env = { TTL: "5s" };

    expect(compileConfig(["--ttl", "7s"], env).ttlNanos).toBe(7_000_000_000n);
    expect(compileConfig([], env).ttlNanos).toBe(5_000_000_000n);
    expect(compileConfig([], { TTL: "" }).ttlNanos).toBe(60_000_000_000n);
  });

  it("knows -d, and the certificates' other spelling", () => {
    expect(compileConfig(["-d"], {}).debug).toBe(true);
    const alias = ["--tls-server-certs-dir", "/other"];
    expect(compileConfig(alias, {}).tlsCertsDir).toBe("/other");
    expect(
      compileConfig(["--tls-certs-dir", "/tls", ...alias], {}).tlsCertsDir,
    ).toBe("/tls");
  });

  it.each([
    {
      argv: ["--address", "9443"],
      want: `--address: expected host:port, [ipv6]:port or :port with a port up to 65535, got "9443"`,
    },
    { argv: ["--address", "::1:9443"], want: "--address: expected host:port" },
    { argv: ["--address", ":65536"], want: "--address: expected host:port" },
    {
      argv: ["--max-recv-message-size", "0"],
      want: `--max-recv-message-size: expected MB as a whole number or a quantity with a suffix such as 64Mi, from 1 to 2047 MB, got "0"`,
    },
    {
      argv: ["--max-recv-message-size", "4096"],
      want: "--max-recv-message-size: expected",
    },
    { argv: ["--max-module-size", "many"], want: `got "many"` },
    {
      argv: ["--module-memory-limit", "63Ki"],
      want: "such as 64Mi, from 64Ki to 65536 MB, got",
    },
    {
      argv: ["--module-memory-limit", "-1"],
      want: "--module-memory-limit: expected",
    },
    {
      argv: ["--module-stack-limit", "63"],
      want: `--module-stack-limit: expected KB as a whole number or a quantity with a suffix such as 512Ki, from 64 to 65536 KB, got "63"`,
    },
    {
      argv: ["--max-total-run-memory", "2Pi"],
      want: "--max-total-run-memory: expected",
    },
    {
      argv: ["--max-total-run-memory", "1023Ki"],
      want: `such as 64Mi, 0 or from 1 to 1048576 MB, got "1023Ki"`,
    },
    {
      argv: ["--max-cache-size", "1k"],
      want: `--max-cache-size: expected MB as a whole number or a quantity with a suffix such as 64Mi, 0 or from 1 to 1048576 MB, got "1k"`,
    },
    {
      argv: ["--module-memory-limit", "1e8"],
      want: `--module-memory-limit: expected MB as a whole number or a quantity with a suffix such as 64Mi, from 64Ki to 65536 MB, got "1e8"`,
    },
    {
      argv: ["--ttl", "60"],
      want: `--ttl: expected a duration such as 60s or 5m, from 0 to 2562047h, got "60"`,
    },
    { argv: ["--ttl", "-1s"], want: "--ttl: expected a duration" },
    {
      argv: ["--module-timeout", "0s"],
      want: "--module-timeout: expected a duration such as 30s, more than 0 and at most 24h",
    },
    { argv: ["--module-timeout", "25h"], want: "--module-timeout: expected" },
    {
      argv: ["--max-concurrent-runs", "-1"],
      want: `--max-concurrent-runs: expected a whole number from 0 to 1000000, got "-1"`,
    },
    {
      argv: ["--max-concurrent-runs", "1.5"],
      want: "--max-concurrent-runs: expected",
    },
    {
      argv: ["--max-concurrent-compiles", "0"],
      want: "--max-concurrent-compiles: expected a whole number from 1",
    },
    {
      argv: ["--engine-workers", "0"],
      want: "--engine-workers: expected a whole number from 1 to 1024",
    },
    {
      argv: ["--engine-workers", "1025"],
      want: `--engine-workers: expected a whole number from 1 to 1024, got "1025"`,
    },
    {
      argv: ["--max-cached-modules", "1000001"],
      want: "--max-cached-modules: expected",
    },
    {
      argv: ["--max-tag-staleness", "-1s"],
      want: `--max-tag-staleness: expected a duration such as 10m or 1h, from 0 to 87840h, got "-1s"`,
    },
    {
      argv: ["--insecure-registry", "http://reg.example"],
      want: "--insecure-registry: expected host[:port], with commas between (",
    },
    {
      argv: ["--registry-ca", "reg.example"],
      want: "--registry-ca: expected host[:port]=file, with commas between (",
    },
    {
      argv: ["--registry-token-server", "reg.example="],
      want: "--registry-token-server: expected host[:port]=host[:port], with commas between (",
    },
    {
      argv: ["--warm-modules", "a,,b"],
      want: "--warm-modules: expected values with commas between, none of them empty",
    },
    {
      argv: ["--max-cache-size", "-1"],
      want: "--max-cache-size: expected MB",
    },
    {
      argv: ["--module-dir", ""],
      want: `--module-dir: expected a path, got ""`,
    },
    { argv: ["--cache-dir", "a\0b"], want: "--cache-dir: expected a path" },
    {
      argv: ["-d=maybe"],
      want: `--debug: expected true or false, got "maybe"`,
    },
    {
      argv: ["--no-debug=true"],
      want: "unknown option '--no-debug=true'",
    },
    { argv: ["--inscure=true"], want: "unknown option '--inscure=true'" },
    { argv: ["--inscure"], want: "unknown option '--inscure'" },
    { argv: ["--ttl"], want: "option '--ttl <duration>' argument missing" },
    { argv: ["extra"], want: "too many arguments" },
  ])("refuses $argv", ({ argv, want }) => {
    const compile = () => compileConfig(argv, {});

    expect(compile).toThrow(ConfigError);
    expect(compile).toThrow(want);
  });

  it.each([
    {
      env: { TTL: "soon" },
      want: `--ttl (TTL): expected a duration such as 60s or 5m, from 0 to 2562047h, got "soon"`,
    },
    {
      env: { INSECURE: "yes" },
      want: `--insecure (INSECURE): expected true or false, got "yes"`,
    },
  ])("names the variable when it refuses $env", ({ env, want }) => {
    expect(() => compileConfig([], env)).toThrow(want);
  });

  it("gives every flag a variable of its own, and shows both in the help", () => {
    const help = addFlags(new Command()).helpInformation();

    expect(new Set(flags.map((flag) => flag.env)).size).toBe(flags.length);
    for (const flag of flags) {
      expect(help).toContain(`--${flag.name}`);
      expect(help.replace(/\s+/g, " ")).toContain(`(${flag.env}`);
    }
    expect(help).not.toMatch(/^ *--no-/m);
    expect(help).not.toContain("tls-server-certs-dir");
  });

  it("shows the help in groups, what is not of the table last", () => {
    const help = addFlags(new Command()).helpInformation();

    expect(help.match(/^\w+:$/gm)).toEqual([
      "Server:",
      "Modules:",
      "Policy:",
      "Limits:",
      "Cache:",
      "Options:",
    ]);
    expect(help).toMatch(/\n\nOptions:\n +-h, --help .*\n$/);
    expect(help).not.toContain("--insecure <");
    expect(help).not.toContain("--insecure=");
  });

  it("says of what is read again only what the command does", () => {
    const helpOf = (command: Command) =>
      command.helpInformation().replace(/\s+/g, " ");

    expect(helpOf(addFlags(new Command()))).toContain(
      "the operator's Cedar policy, read again when it changes and on SIGHUP; unset",
    );
    const once = helpOf(addFlags(new Command(), ["sandbox-policy-file"]));
    expect(once).toContain(
      "the operator's Cedar policy; unset grants no module anything (SANDBOX_POLICY_FILE)",
    );
    expect(once).not.toMatch(/read again|SIGHUP/);
  });
});
