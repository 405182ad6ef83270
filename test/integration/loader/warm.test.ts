import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { guest } from "../../support/guests.js";
import {
  startScriptedRegistry,
  type ScriptedRegistry,
} from "../../support/scripted-registry.js";
import { recordOutput } from "../../support/suite-output.js";
import { createGate } from "./gate.js";
import { usePrograms, type Program } from "./program.js";

const DIGEST = `sha256:${"a".repeat(64)}`;

/** Modules that are in memory before the first request. */
describe("integration/loader/warm", () => {
  const programs = usePrograms("test");
  let registry: ScriptedRegistry;
  let moduleDir: string;
  /** `127.0.0.1:<port>/example/module@sha256:…` */
  let pinned: string;

  beforeEach(async () => {
    registry = await startScriptedRegistry();
    const { manifestDigest } = registry.addModule("example/module", {
      wasm: await guest("v1/hello"),
    });
    pinned = `${registry.authority}/example/module@${manifestDigest}`;
    moduleDir = join(programs.dir(), "modules");
    await mkdir(moduleDir);
    await writeFile(join(moduleDir, "hello.wasm"), await guest("v2/hello"));
  });
  afterEach(async () => {
    await registry.stop();
  });

  async function start(...modules: readonly string[]): Promise<Program> {
    return await programs.start([
      ...["--module-dir", moduleDir],
      ...modules.flatMap((module) => ["--warm-modules", module]),
    ]);
  }

  it("[C66] is alive at once, and ready when they are loaded", async () => {
    const { gate, letGo } = createGate();
    registry.intercept(async () => {
      await gate;
      return "pass" as const;
    });
    const program = await start(pinned, "path:hello.wasm");

    const before = await pages(program);
    letGo();
    await program.logged("ready");
    const after = await pages(program);
    const asked = registry.requests.length;
    const answers = [
      await program.call({ module: { type: "OCI", oci: { ref: pinned } } }),
      await program.call({ module: { type: "Path", path: "hello.wasm" } }),
    ];

    expect(before).toEqual({ livez: 200, readyz: 503 });
    expect(after).toEqual({ livez: 200, readyz: 200 });
    expect(answers.map(({ messages }) => messages.join())).toEqual([
      "hello world",
      "hello world",
    ]);
    expect(registry.requests).toHaveLength(asked);
    await program.stop();
    const warm = program.lines("module is warm").map(({ module }) => module);
    // In whatever order they were ready.
    expect(warm.sort()).toEqual([`OCI ${pinned}`, "Path hello.wasm"]);
    // Both of them before anybody asked.
    expect(program.lines("module loaded")).toHaveLength(2);
  });

  it("becomes ready without a module whose registry is down, and says so", async () => {
    await registry.stop();
    const program = await start(pinned, "path:hello.wasm");

    await program.logged("ready");

    expect(await pages(program)).toEqual({ livez: 200, readyz: 200 });
    await program.stop();
    expect(
      program
        .lines("cannot load a module of --warm-modules")
        .map(({ reason }) => reason),
    ).toEqual([
      `cannot resolve module: module OCI ${pinned}: ${registry.authority}: connection refused (ECONNREFUSED)`,
    ]);
    expect(program.lines("module is warm")).toHaveLength(1);
  });

  it.each([
    {
      name: "a reference without a digest",
      entry: "ghcr.io/example/greeter:v1",
      want: "expected a reference with a digest, or path:<file>",
    },
    {
      name: "what is no reference",
      entry: "ghcr.io//greeter",
      want: "ghcr.io//greeter",
    },
    {
      name: "a file without --module-dir",
      entry: "path:greeter.wasm",
      want: "a file needs --module-dir (MODULE_DIR)",
    },
  ])("does not start with $name among them", async ({ entry, want }) => {
    const good = `ghcr.io/example/greeter@${DIGEST}`;
    const { code, stderr } = await programs.startInVain([
      ...["--warm-modules", `${good},${entry}`],
    ]);

    expect(code).toBe(2);
    expect(stderr).toMatch(/^function-wasm: --warm-modules "[^\n]+[^.\n]\n$/u);
    expect(stderr).toContain(`--warm-modules "${entry}": `);
    expect(stderr).toContain(want);
  });
});

async function pages({ healthUrl }: Program) {
  const statusOf = async (path: string) => {
    const response = await fetch(new URL(path, healthUrl));
    recordOutput("page", await response.text());
    return response.status;
  };
  return { livez: await statusOf("/livez"), readyz: await statusOf("/readyz") };
}
