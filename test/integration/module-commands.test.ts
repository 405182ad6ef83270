import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  DOCKER_REGISTRY_LOGIN,
  type DockerRegistry,
  haveDockerRegistry,
  startDockerRegistry,
} from "../support/docker-registry.js";
import { guest } from "../support/guests.js";
import { createCertificateMaker } from "../unit/function/certificates.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const MANIFEST = `\
abi: 2
name: greeter
version: 1.0.0
requires:
  credentials: [cmdb]
`;
const PINNED = /^(?<pinned>\S+@sha256:[0-9a-f]{64})$/m;

interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The built program against a registry that wants a login and has a certificate of its own. */
describe.skipIf(!haveDockerRegistry())("integration/module-commands", () => {
  let registry: DockerRegistry;
  let dir: string;

  beforeAll(async () => {
    registry = await startDockerRegistry({
      auth: DOCKER_REGISTRY_LOGIN,
      tls: true,
    });
    dir = await mkdtemp(join(tmpdir(), "module-commands-"));
    for (const name of ["good", "bad", "anonymous", "tmp", "v1", "v2"])
      await mkdir(join(dir, name));
    const configFor = (password: string) =>
      JSON.stringify({
        auths: {
          [registry.authority]: { ...DOCKER_REGISTRY_LOGIN, password },
        },
      });
    const { password } = DOCKER_REGISTRY_LOGIN;
    await writeFile(join(dir, "good/config.json"), configFor(password));
    await writeFile(join(dir, "bad/config.json"), configFor("hunter2-wrong"));
    await writeFile(join(dir, "v1/greeter.wasm"), await guest("v1/hello"));
    await writeFile(join(dir, "v2/greeter.wasm"), await guest("p2/stdio"));
    await writeFile(join(dir, "v2/wasmfn.yaml"), MANIFEST);
    await writeFile(join(dir, "broken.wasm"), await guest("shape/no-run"));
  });

  afterAll(async () => {
    await registry.stop();
    await rm(dir, { recursive: true, force: true });
  });

  it("pushes a component, tells what it is, and pulls the same bytes", async () => {
    const pushed = await run(["push", join(dir, "v2/greeter.wasm"), ref("v2")]);
    const pinned = PINNED.exec(pushed.stdout)?.groups?.["pinned"] ?? "";
    const inspected = await run(["inspect", pinned]);
    const out = join(dir, "pulled.wasm");
    const pulled = await run(["pull", ref("v2"), `--output-file=${out}`]);

    expect(pushed).toMatchObject({ code: 0 });
    expect(pinned.startsWith(`${ref("v2")}@`)).toBe(true);
    expect(pushed.stdout).toContain(`    ref: ${pinned}\n`);
    expect(pushed.stdout).toContain("requires:\n  credentials:\n    - cmdb\n");
    expect(inspected).toMatchObject({ code: 0, stderr: "" });
    expect(inspected.stdout).toContain(`artifact: ${pinned}\n`);
    expect(inspected.stdout).toContain("\nabi: 2\nname: greeter\n");
    expect(pulled).toMatchObject({ code: 0 });
    expect(PINNED.exec(pulled.stdout)?.groups?.["pinned"]).toBe(pinned);
    expect(await readFile(out)).toEqual(
      await readFile(join(dir, "v2/greeter.wasm")),
    );
    expect(await readFile(join(dir, "wasmfn.yaml"), "utf8")).toContain(
      "- cmdb\n",
    );
    // What was pulled can be published again as it is.
    await rm(join(dir, "wasmfn.yaml"));
  });

  it("makes the same digest of the same files, which is there already then", async () => {
    const argv = ["push", join(dir, "v1/greeter.wasm")];

    const first = await run([...argv, ref("r1"), "--output=json"]);
    const again = await run([...argv, ref("r1"), "--output=json"]);
    const elsewhere = await run([...argv, ref("r2"), "--output=json"]);
    const later = await run([...argv, ref("r3"), "--output=json"], {
      SOURCE_DATE_EPOCH: "1700000001",
    });

    expect([first, again, elsewhere, later]).toMatchObject([
      { code: 0 },
      { code: 0 },
      { code: 0 },
      { code: 0 },
    ]);
    expect(again.stdout).toBe(first.stdout);
    expect(first.stderr).toMatch(/\nmodule push: artifact \S+ .* pushed\n$/);
    expect(again.stderr).toMatch(/\nmodule push: artifact \S+ .* is there/);
    expect(again.stderr).not.toContain(" pushed");
    expect(digestIn(elsewhere)).toBe(digestIn(first));
    expect(digestIn(later)).not.toBe(digestIn(first));
  });

  it("publishes nothing that the runtime refuses", async () => {
    const outcome = await run(["push", join(dir, "broken.wasm"), ref("b")]);
    const asked = await run(["inspect", ref("b")]);

    expect(outcome).toMatchObject({ code: 1, stdout: "" });
    expect(outcome.stderr).toMatch(
      /\nmodule push: module \S+broken\.wasm cannot be loaded: export wasmfn_run: expected a function .*\n$/,
    );
    expect(asked).toMatchObject({ code: 2, stdout: "" });
  });

  it.each([
    { name: "a wrong credential", config: "bad" },
    { name: "no credential", config: "anonymous" },
  ])("says so with $name, and shows no secret", async ({ config }) => {
    const env = { DOCKER_CONFIG: join(dir, config) };

    const outcomes = [
      await run(["push", join(dir, "v1/greeter.wasm"), ref("x")], env),
      await run(["inspect", ref("v2")], env),
      await run(["pull", ref("v2"), `--output-file=${dir}/x.wasm`], env),
    ];

    for (const { code, stdout, stderr } of outcomes) {
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
      expect(stderr).toMatch(new RegExp(`${registry.authority}.*credential`));
      expect(timesIn(lastLine(stderr), registry.authority)).toBe(1);
      expect(stderr).not.toContain("hunter2-wrong");
    }
    expect(await readdir(dir)).not.toContain("x.wasm");
  });

  it("trusts no other certificate authority than that of --registry-ca", async () => {
    const maker = createCertificateMaker();
    const other = maker.authority("other");

    const outcome = await run(
      ["push", join(dir, "v1/greeter.wasm"), ref("x")],
      { REGISTRY_CA: `${registry.authority}=${other}` },
    );

    maker.remove();
    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toMatch(
      new RegExp(
        `^module push: cannot push ${ref("x")}: the TLS certificate does not verify, --registry-ca names a CA to trust for this host \\([A-Z_]+\\)$`,
      ),
    );
  });

  it("says once where nobody answers", async () => {
    const gone = "127.0.0.1:1/team/greeter:x";

    const outcome = await run(["push", join(dir, "v1/greeter.wasm"), gone]);

    expect(outcome).toMatchObject({ code: 2, stdout: "" });
    expect(lastLine(outcome.stderr)).toBe(
      `module push: cannot push ${gone}: connection refused (ECONNREFUSED)`,
    );
  });

  it("pulls nothing when the manifest's directory is not there", async () => {
    const outcome = await run([
      ...["pull", ref("v2"), `--output-file=${dir}/x.wasm`],
      `--manifest-file=${dir}/gone/wasmfn.yaml`,
    ]);

    expect(outcome).toEqual({
      code: 2,
      stdout: "",
      stderr: `module pull: --manifest-file "${dir}/gone/wasmfn.yaml": expected a directory to write to, there is no "${dir}/gone"\n`,
    });
    expect(await readdir(dir)).not.toContain("x.wasm");
  });

  it("leaves nothing behind", async () => {
    expect(await readdir(join(dir, "tmp"))).toEqual([]);
  });

  it("explains itself", async () => {
    const group = await run(["--help"]);
    const { code, stdout, stderr } = await run(["push", "--help"]);

    expect(group.stdout).toMatch(/push .*\n[\s\S]*pull .*\n[\s\S]*inspect /);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("Exit code: 0 it is published");
    expect(stdout).not.toContain("--address");
  });

  function ref(tag: string): string {
    return `${registry.authority}/team/greeter:${tag}`;
  }

  async function run(
    argv: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<Outcome> {
    const child = spawn(
      process.execPath,
      [join(root, "dist/main.js"), "module", ...argv],
      {
        stdio: ["ignore", "pipe", "pipe"],
        env: {
          PATH: process.env["PATH"],
          TMPDIR: join(dir, "tmp"),
          DOCKER_CONFIG: join(dir, "good"),
          REGISTRY_CA: `${registry.authority}=${registry.caFile}`,
          SOURCE_DATE_EPOCH: "1700000000",
          ...env,
        },
      },
    );
    const written = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (chunk: string) => {
        written[name] += chunk;
      });
    }
    const [code] = (await once(child, "close")) as [number | null];
    return { code, ...written };
  }
});

function lastLine(text: string): string {
  return text.trimEnd().split("\n").at(-1) ?? "";
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

function digestIn({ stdout }: Outcome): unknown {
  return (JSON.parse(stdout) as { digest: unknown }).digest;
}
