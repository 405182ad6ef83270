import { readFile } from "node:fs/promises";

import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  artifactPaths,
  messages,
  refusal,
  scope,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";
import { assembleText, guest } from "../support/guests.js";
import {
  htmlPage,
  precompiledFile,
  wrongImportModule,
} from "../support/hostile-modules.js";
import { nestComponents } from "../support/wasm-binary.js";

/** What is no module of ours is refused at load, by what was found and what was expected. */
describe("security/shapes", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  async function expectRefused(
    module: string | Uint8Array,
    want: readonly (string | RegExp)[],
  ): Promise<void> {
    const compiled = engine.compiles();

    const error = await refusal(engine.load(module));

    expect(error.code).toBe("module-invalid");
    expect(error.message).toMatch(/^module Path module-\d+\.wasm /);
    for (const part of want) expect(error.message).toMatch(part);
    expect(error.message.length).toBeLessThan(2_000);
    expect(engine.compiles()).toBe(compiled);
  }

  const runType = /expected a function \(i32, i32\) -> i64/;
  it.each([
    { guest: "shape/no-exports", want: ["wasmfn_run", runType, "no such"] },
    { guest: "shape/no-run", want: ["wasmfn_run", runType, "no such"] },
    { guest: "shape/command", want: ["wasmfn_run", runType, "no such"] },
    { guest: "shape/no-memory", want: [/memory.*expected.*no such/] },
    {
      guest: "shape/no-alloc",
      want: [/wasmfn_alloc.*\(i32\) -> i32.*no such/],
    },
    { guest: "shape/run-is-global", want: ["wasmfn_run", runType, "a global"] },
    { guest: "shape/run-is-memory", want: ["wasmfn_run", runType, "a memory"] },
    { guest: "shape/run-is-table", want: ["wasmfn_run", runType, "a table"] },
    { guest: "shape/run-signature", want: [runType, /got .*\(i32\) -> i32/] },
    {
      guest: "shape/run-result",
      want: [runType, /got .*\(i32, i32\) -> \(\)/],
    },
    {
      guest: "shape/alloc-signature",
      want: [/wasmfn_alloc.*got .*\(i64\) -> i32/],
    },
    {
      guest: "shape/initialize-signature",
      want: [/_initialize.*got .*\(i32\)/],
    },
    { guest: "shape/memory-is-function", want: [/memory.*got a function/] },
    { guest: "shape/import-env", want: ["env.do_evil", "wasmfn.log"] },
    { guest: "shape/import-memory", want: ["env.memory", "(memory)"] },
    { guest: "shape/import-wasi-unknown", want: ["fd_teleport"] },
    { guest: "shape/import-wasi-kind", want: ["clock_time_get", "(global)"] },
    { guest: "shape/import-wasi-unstable", want: ["wasi_unstable.proc_exit"] },
    { guest: "shape/import-wasmfn-unknown", want: ["wasmfn.teleport"] },
    { guest: "v2/no-run", want: [/expected run: .*got .*without exports/] },
    { guest: "v2/run-is-instance", want: [/expected run: .*got/] },
    { guest: "v2/run-signature", want: [/expected run: .*got/] },
    { guest: "v2/run-other-name", want: [/expected run: .*got .*handle/] },
    {
      guest: "v2/run-inside-interface",
      want: [/expected run: .*got .*example:other\/handler/],
    },
    { guest: "v2/import-unknown", want: ["evil:host/world-domination@1.0.0"] },
    { guest: "v2/import-root-unknown", want: ["teleport"] },
    {
      guest: "v2/import-wasi-version",
      want: ["wasi:clocks/monotonic-clock@0.9.0"],
    },
    { guest: "v2/import-module", want: ["plugin"] },
  ])("refuses $guest without compiling it", async ({ guest, want }) => {
    await expectRefused(guest, want);
  });

  const fdWrite =
    "import wasi_snapshot_preview1.fd_write: expected a function (i32, i32, i32, i32) -> i32";
  it.each([
    {
      name: "fd_write without anything",
      imports: '(import "wasi_snapshot_preview1" "fd_write" (func))',
      want: `${fdWrite}, got a function () -> ()`,
    },
    {
      name: "fd_write of another result",
      imports:
        '(import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i64)))',
      want: `${fdWrite}, got a function (i32, i32, i32, i32) -> i64`,
    },
    {
      name: "wasmfn.log of one parameter",
      imports: '(import "wasmfn" "log" (func (param i32)))',
      want: "import wasmfn.log: expected a function (i32, i32, i32) -> (), got a function (i32) -> ()",
    },
    {
      name: "wasmfn.http of another result",
      imports: '(import "wasmfn" "http" (func (param i32 i32) (result i32)))',
      want: "import wasmfn.http: expected a function (i32, i32) -> i64, got a function (i32, i32) -> i32",
    },
    {
      name: "a good import before a wrong one",
      imports: `(import "wasmfn" "log" (func (param i32 i32 i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func (param i64)))`,
      want: "import wasi_snapshot_preview1.proc_exit: expected a function (i32) -> (), got a function (i64) -> ()",
    },
    {
      name: "a thousand parameters",
      imports: `(import "wasmfn" "log" (func (param ${"i64 ".repeat(1000)})))`,
      want: `got a function (${"i64, ".repeat(15)}i64 and 984 more) -> ()`,
    },
  ])("refuses an import of $name without compiling it", async (row) => {
    const module = await assembleText(`(module
      ${row.imports}
      (memory (export "memory") 1)
      (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
      (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))`);

    await expectRefused(module, [row.want]);
  });

  it("refuses a wrong import in 20 MB in under a second", async () => {
    const module = await engine.write(wrongImportModule(20_000_000));
    const compiled = engine.compiles();

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    expect(outcome).toMatchObject({
      reason: {
        code: "module-invalid",
        message: expect.stringContaining(
          `${fdWrite}, got a function () -> ()`,
        ) as string,
      },
    });
    expect(ms).toBeLessThan(1_000);
    expect(engine.compiles()).toBe(compiled);
  });

  it.each([
    { guest: "shape/import-wasi-signature", want: ["clock_time_get", "got a"] },
    { guest: "shape/import-log-signature", want: ["wasmfn.log", "got a"] },
    { guest: "v2/import-log-signature", want: ["import log: expected log: "] },
  ])("refuses $guest without compiling it", async ({ guest, want }) => {
    await expectRefused(guest, want);
  });

  // The interface's name is right, the type of what is in it is not: the linker finds out.
  it("refuses v2/import-wasi-signature by the import's name", async () => {
    const error = await refusal(engine.call("v2/import-wasi-signature"));

    expect(error.code).toBe("module-invalid");
    expect(error.message).toContain("monotonic-clock");
  });

  it("refuses a body that does not validate", async () => {
    const error = await refusal(engine.load("shape/invalid-body"));

    expect(error.code).toBe("module-invalid");
    expect(error.message).toMatch(/type mismatch/);
  });

  it.each([
    { name: "an empty file", bytes: Buffer.alloc(0), want: ["an empty file"] },
    { name: "8 zero bytes", bytes: Buffer.alloc(8), want: ["8 bytes"] },
    {
      name: "an HTML page",
      bytes: htmlPage(),
      want: ["HTML", "<!DOCTYPE html>"],
    },
    {
      name: "a precompiled file",
      bytes: precompiledFile(),
      want: ["precompiled"],
    },
    {
      name: "a gzip file",
      bytes: Buffer.from("1f8b0800", "hex"),
      want: ["gzip"],
    },
    { name: "text", bytes: Buffer.from("(module)"), want: ["WAT"] },
    {
      name: "a shell script",
      bytes: Buffer.from("#!/bin/sh\n\x1b[31m"),
      want: ["#!/bin/sh"],
    },
    {
      name: "noise",
      bytes: Buffer.alloc(4096, "\xf7\x03\x91"),
      want: ["4096 bytes"],
    },
    { name: "a bare magic number", bytes: Buffer.from("\0asm"), want: [] },
    {
      name: "a version of the future",
      bytes: Buffer.from("\0asm\x02\0\0\0"),
      want: ["version"],
    },
    {
      name: "nothing but a header",
      bytes: Buffer.from("\0asm\x01\0\0\0"),
      want: ["wasmfn_run"],
    },
  ])("refuses $name", async ({ bytes, want }) => {
    await expectRefused(bytes, want);
  });

  it("refuses its own artifact when it comes as a module", async () => {
    const separate = await startEngine();
    await separate.call("v1/hello");
    const [artifact] = await artifactPaths(separate.cacheDir);
    const bytes = await readFile(artifact ?? "");
    await separate.close();

    const error = await refusal(engine.load(bytes));

    expect(error.code).toBe("module-invalid");
  });

  it.each(["v1/echo", "v2/composed", "p2/http"])(
    "refuses %s wherever it is cut off",
    async (name) => {
      const whole = await guest(name);
      const cuts = Array.from({ length: 24 }, (_, index) =>
        Math.floor((whole.length * (index + 1)) / 25),
      );

      for (const cut of cuts) await expectRefused(whole.subarray(0, cut), []);
    },
  );

  it("survives a flipped byte anywhere in a module", async () => {
    const whole = await guest("v1/hello");

    for (let index = 0; index < whole.length; index++) {
      const flipped = Buffer.from(whole);
      flipped[index] = (flipped[index] ?? 0) ^ 0x55;
      const [outcome] = await Promise.allSettled([
        engine.call(flipped, { timeoutMs: 200 }),
      ]);
      if (outcome.status === "rejected") {
        expect(outcome.reason).toMatchObject({ name: "EngineError" });
      }
    }

    expect(messages(await engine.call("v1/hello"))).toEqual(["hello world"]);
  });

  it("bounds how deep components nest", async () => {
    const nested = nestComponents(await guest("v2/hello"), 100);

    await expectRefused(nested, [/nested components/]);
  });

  it("lets components nest as composed ones do", async () => {
    const nested = nestComponents(await guest("v2/hello"), 8);

    expect(messages(await engine.call(nested))).toEqual(["hello world"]);
  });

  it.each([
    { guest: "shape/memory64", want: /memory64/ },
    { guest: "shape/multi-memory", want: /multi-memory/ },
    { guest: "shape/shared-memory", want: /threads|shared/ },
    { guest: "shape/atomics", want: /threads|atomic/ },
    { guest: "shape/relaxed-simd", want: /relaxed.simd/i },
    { guest: "shape/tail-call", want: /tail.?call/ },
    { guest: "shape/exceptions", want: /exceptions/ },
    { guest: "shape/gc", want: /gc/ },
    {
      guest: "shape/function-references",
      want: /function.references|reference type/,
    },
    { guest: "shape/custom-page-size", want: /custom.page.size/ },
    { guest: "shape/wide-arithmetic", want: /wide.arithmetic/ },
  ])("refuses $guest by the feature's name", async ({ guest, want }) => {
    const error = await refusal(engine.load(guest));

    expect(error.code).toBe("module-invalid");
    expect(error.message).toMatch(want);
  });

  it.each(["shape/simd", "shape/bulk-and-reference-types"])(
    "accepts %s",
    async (name) => {
      expect(messages(await engine.call(name))).toEqual([]);
    },
  );
});
