import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  engineOptions,
  loaderOptions,
  requireModuleDir,
  schemeOptions,
  type Settings,
  warmSources,
} from "../../../src/cli/settings.js";
import { ConfigError } from "../../../src/config.js";
import { createSourceParsers } from "../../../src/loader/index.js";
import { sourceParsers } from "../../support/source-parsers.js";
import {
  type CertificateAuthorities,
  createCertificateAuthorities,
  type KeyPair,
} from "../loader/http/certificates.js";
import { settingsOf } from "./settings-of.js";

let dir: string;
let authorities: CertificateAuthorities;
let one: string;
let two: string;
let leaf: KeyPair;

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "settings-"));
  authorities = createCertificateAuthorities();
  one = authorities.authority("one");
  two = authorities.authority("two");
  leaf = authorities.leaf({ authority: "one", altNames: "DNS:localhost" });
});

afterAll(() => {
  authorities.remove();
  rmSync(dir, { recursive: true });
});

/** A new file with that content. */
function fileOf(content: string | Uint8Array): string {
  const file = join(dir, randomUUID());
  writeFileSync(file, content);
  return file;
}

function schemeWith(...argv: readonly string[]) {
  return schemeOptions(settingsOf(argv));
}

/** What the flags are refused with. */
function refusalOf(call: () => unknown): ConfigError {
  try {
    call();
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown;
    throw thrown;
  }
  throw new Error("expected a refusal, there was none");
}

describe("cli/settings schemeOptions", () => {
  it("names nobody by default", () => {
    expect(schemeWith()).toEqual({
      insecureHosts: [],
      registryCas: new Map(),
      tokenServers: new Map(),
    });
  });

  it("reads what the flags name", () => {
    const both = `# ours\n${one}\n# theirs\n${two}`;

    const scheme = schemeWith(
      "--insecure-registry=a.example,b.example:5000",
      "--registry-token-server=a.example=auth.example:8443",
      `--registry-ca=c.example=${fileOf(one)}`,
      `--registry-ca=d.example:5000=${fileOf(both)}`,
    );

    expect(scheme).toEqual({
      insecureHosts: ["a.example", "b.example:5000"],
      tokenServers: new Map([["a.example", "auth.example:8443"]]),
      registryCas: new Map([
        ["c.example", one],
        ["d.example:5000", both],
      ]),
    });
  });

  const broken = (pem: string) =>
    pem.replace(/\n[A-Za-z0-9+/]{64}\n/, "\nhunter2hunter2\n");

  it.each([
    {
      name: "is not there",
      file: () => join(dir, "gone"),
      want: /^--registry-ca c\.example: ENOENT: no such file or directory, open '[^']*gone'$/,
    },
    {
      name: "is a directory",
      file: () => {
        mkdirSync(join(dir, "directory"), { recursive: true });
        return join(dir, "directory");
      },
      want: /^--registry-ca c\.example: expected a regular file, got \S+directory$/,
    },
    {
      name: "is a FIFO that nobody writes to",
      file: () => {
        execFileSync("mkfifo", [join(dir, "fifo")]);
        return join(dir, "fifo");
      },
      want: /^--registry-ca c\.example: expected a regular file, got \S+fifo$/,
    },
    {
      name: "is a device without an end",
      file: () => "/dev/zero",
      want: /^--registry-ca c\.example: expected a regular file, got \/dev\/zero$/,
    },
    {
      name: "is far too large",
      file: () => fileOf(Buffer.alloc(1024 * 1024 + 1)),
      want: /^--registry-ca c\.example: expected at most 1048576 bytes in \S+, got 1048577$/,
    },
    {
      name: "is empty",
      file: () => fileOf(""),
      want: /^--registry-ca c\.example: expected certificates in PEM in \S+, got none$/,
    },
    {
      name: "is a key by mistake",
      file: () => fileOf(leaf.key),
      want: /^--registry-ca c\.example: expected certificates in PEM in \S+, got none$/,
    },
    {
      name: "is a certificate that is not in PEM",
      file: () =>
        fileOf(Buffer.from(one.replace(/-----[^-]+-----|\s/g, ""), "base64")),
      want: /^--registry-ca c\.example: expected certificates in PEM in \S+, got none$/,
    },
    {
      name: "ends in the middle of a certificate",
      file: () => fileOf(one.slice(0, -40)),
      want: /^--registry-ca c\.example: expected certificates in PEM in \S+, got none$/,
    },
    {
      name: "holds no certificate where it says so",
      file: () =>
        fileOf(
          "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n",
        ),
      want: /^--registry-ca c\.example: \S+ does not parse: \S.*$/,
    },
    {
      name: "holds a broken certificate",
      file: () => fileOf(broken(one)),
      want: /^--registry-ca c\.example: \S+ does not parse: \S.*$/,
    },
    {
      name: "holds a good certificate and then a broken one",
      file: () => fileOf(`${one}${broken(two)}`),
      want: /^--registry-ca c\.example: \S+ does not parse: \S.*$/,
    },
  ])("refuses a CA file that $name, in one sentence", ({ file, want }) => {
    const refusal = refusalOf(() =>
      schemeWith(`--registry-ca=c.example=${file()}`),
    );

    expect(refusal.code).toBe("flag-invalid");
    expect(refusal.message).toMatch(want);
    expect(refusal.message).toMatch(/^[^\p{C}]+$/u);
    expect(refusal.message).not.toMatch(/hunter2|aHVudGVyMg|BEGIN/);
    const secret = leaf.key.split("\n")[1] ?? "";
    expect(refusal.message).not.toContain(secret);
  });
});

describe("cli/settings requireModuleDir", () => {
  const requireDir = (...argv: readonly string[]) => {
    requireModuleDir(settingsOf(argv));
  };

  it("takes none, a directory, and a link to one", () => {
    const link = join(dir, randomUUID());
    symlinkSync(dir, link);

    expect(() => {
      requireDir();
      requireDir(`--module-dir=${dir}`);
      requireDir(`--module-dir=${link}`);
    }).not.toThrow();
  });

  it.each([
    {
      name: "is not there",
      path: () => join(dir, "gone"),
      want: /^--module-dir: ENOENT: no such file or directory, stat '[^']*gone'$/,
    },
    {
      name: "lies below a file",
      path: () => join(fileOf(""), "modules"),
      want: /^--module-dir: ENOTDIR: not a directory, stat '[^']*modules'$/,
    },
    {
      name: "is a file",
      path: () => fileOf(""),
      want: /^--module-dir: expected a directory, got \/\S+$/,
    },
    {
      name: "is a link that leads nowhere",
      path: () => {
        const link = join(dir, randomUUID());
        symlinkSync(join(dir, "gone"), link);
        return link;
      },
      want: /^--module-dir: ENOENT: /,
    },
  ])("refuses one that $name, in one sentence", ({ path, want }) => {
    const refusal = refusalOf(() => {
      requireDir(`--module-dir=${path()}`);
    });

    expect(refusal.code).toBe("flag-invalid");
    expect(refusal.message).toMatch(want);
    expect(refusal.message).toMatch(/^[^\p{C}]+$/u);
  });
});

describe("cli/settings refusals", () => {
  const flagsAndCalls = [
    {
      flag: "--module-dir",
      variable: "MODULE_DIR",
      value: "/nowhere",
      call: requireModuleDir,
      reason: ": ENOENT: ",
    },
    {
      flag: "--module-dir",
      variable: "MODULE_DIR",
      value: "/dev/null",
      call: requireModuleDir,
      reason: ": expected a directory, got /dev/null",
    },
    {
      flag: "--registry-ca",
      variable: "REGISTRY_CA",
      value: "c.example=/nowhere",
      call: schemeOptions,
      reason: " c.example: ENOENT: ",
    },
    {
      flag: "--artifact-key-file",
      variable: "ARTIFACT_KEY_FILE",
      value: "/nowhere",
      call: engineOptions,
      reason: ": ENOENT: ",
    },
    {
      flag: "--artifact-key-file",
      variable: "ARTIFACT_KEY_FILE",
      value: "/dev/null",
      call: engineOptions,
      reason: ": expected a regular file, got /dev/null",
    },
    {
      flag: "--warm-modules",
      variable: "WARM_MODULES",
      value: "path:m",
      call: (settings: Settings) => warmSources(settings, sourceParsers),
      reason: ' "path:m": a file needs ',
    },
  ];

  it.each(flagsAndCalls)(
    "name $variable when $value comes from there, and $flag alone when it does not",
    ({ call, flag, reason, value, variable }) => {
      const other = { [variable]: "of no account" };

      const fromVariable = refusalOf(() =>
        call(settingsOf([], { [variable]: value })),
      );
      const fromFlag = refusalOf(() =>
        call(settingsOf([`${flag}=${value}`], other)),
      );

      expect(fromVariable.message).toContain(`${flag} (${variable})${reason}`);
      expect(fromFlag.message).toContain(`${flag}${reason}`);
    },
  );
});

describe("cli/settings loaderOptions", () => {
  it("hands on what the flags say, in bytes and milliseconds", () => {
    const config = settingsOf([
      "--module-dir=/modules",
      "--max-module-size=2",
      "--cache-dir=/cache",
      "--tag-resolve-interval=30s",
      "--max-tag-staleness=2h",
      "--access-recheck-interval=1m",
    ]);
    const scheme = schemeWith("--insecure-registry=a.example");
    const env = { HOME: "/tmp/nobody", PATH: "/bin" };

    expect(loaderOptions(config, scheme, env)).toEqual({
      ...scheme,
      moduleDir: "/modules",
      maxModuleBytes: 2 * 1024 * 1024,
      cacheDir: "/cache",
      tags: { resolveIntervalMs: 30_000, maxStalenessMs: 7_200_000 },
      accessRecheckIntervalMs: 60_000,
      dockerConfigFile: "/tmp/nobody/.docker/config.json",
      env,
    });
  });

  it("has no Docker config where the environment knows of none", () => {
    const { dockerConfigFile } = loaderOptions(
      settingsOf([]),
      schemeWith(),
      {},
    );

    expect(dockerConfigFile).toBeNull();
  });
});

describe("cli/settings warmSources", () => {
  const digest = `sha256:${"a".repeat(64)}`;
  const warm = (text: string, ...argv: readonly string[]) =>
    warmSources(settingsOf([`--warm-modules=${text}`, ...argv]), sourceParsers);

  it("is nothing by default", () => {
    expect(warmSources(settingsOf([]), sourceParsers)).toEqual([]);
  });

  it("reads references and files, in their order", () => {
    const sources = warm(
      `ghcr.io/a/b:1@${digest},path:dir/m.wasm, alpine@${digest}`,
      "--module-dir=/modules",
    );

    expect(sources).toMatchObject([
      {
        type: "OCI",
        ref: { text: `ghcr.io/a/b:1@${digest}`, digest },
        expectedDigest: null,
        credentials: null,
      },
      { type: "Path", path: "dir/m.wasm", manifestPath: null },
      { type: "OCI", ref: { registry: "index.docker.io", digest } },
    ]);
  });

  it("needs no --module-dir for references", () => {
    expect(warm(`ghcr.io/a/b@${digest}`)).toHaveLength(1);
  });

  it("reads references as the runtime's own parsers do", () => {
    const parsers = createSourceParsers(
      schemeWith("--insecure-registry=registry.example:80"),
    );
    const text = `registry.example:80/a@${digest}`;

    const config = settingsOf([`--warm-modules=${text}`]);

    const parsed = parsers.parseReference(text);
    expect(warmSources(config, parsers)).toEqual([
      {
        type: "OCI",
        ref: parsed.kind === "ok" ? parsed.value : parsed,
        expectedDigest: null,
        credentials: null,
      },
    ]);
  });

  it.each([
    {
      name: "a file without --module-dir",
      text: "path:m.wasm",
      want: '--warm-modules "path:m.wasm": a file needs --module-dir (MODULE_DIR)',
    },
    {
      name: "a tag without digest",
      text: "ghcr.io/a/b:1",
      want: '--warm-modules "ghcr.io/a/b:1": expected a reference with a digest, or path:<file>',
    },
    {
      name: "neither tag nor digest",
      text: "ghcr.io/a/b",
      want: /^--warm-modules "ghcr\.io\/a\/b": expected /,
    },
    {
      name: "junk",
      text: "https://Example.com/\u202em\n",
      want: /^--warm-modules "https:\/\/Example\.com\/\\u202em": \S/,
    },
    {
      name: "the one bad one of several",
      text: `ghcr.io/a/b@${digest},ghcr.io/a/b@sha256:12`,
      want: /^--warm-modules "ghcr\.io\/a\/b@sha256:12": \S/,
    },
  ])("refuses $name, in one sentence", ({ text, want }) => {
    const refusal = refusalOf(() => warm(text));

    expect(refusal.code).toBe("flag-invalid");
    if (typeof want === "string") expect(refusal.message).toBe(want);
    else expect(refusal.message).toMatch(want);
    expect(refusal.message).toMatch(/^[^\p{C}]+$/u);
  });
});
