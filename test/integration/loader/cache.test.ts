import { readdir, stat, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import { guest } from "../../support/guests.js";
import type { PublishedModule } from "../../support/registry-content.js";
import {
  startScriptedRegistry,
  type ScriptedRegistry,
} from "../../support/scripted-registry.js";
import { assembleCoreModule } from "../../support/wasm-binary.js";
import type { Step } from "./caller.js";
import { createGate } from "./gate.js";
import { usePrograms, type Program } from "./program.js";

const MIB = 1024 * 1024;
const HOUR_MS = 3_600_000;
const REPOSITORY = "example/module";
const UNUSED = `sha256:${"0".repeat(64)}`;
const TEMPORARY = /^\.tmp-/u;

/** What is on the disk, whatever happens to the programs that use it. */
describe("integration/loader/cache", () => {
  const programs = usePrograms("test");
  let registry: ScriptedRegistry;

  beforeEach(async () => {
    registry = await startScriptedRegistry();
  });
  afterEach(async () => {
    await registry.stop();
  });

  const cacheDir = () => join(programs.dir(), "cache");
  const blobsDir = () => join(cacheDir(), "blobs");

  async function blobFiles() {
    const names = await readdir(blobsDir());
    return await Promise.all(
      names.map(async (name) => {
        const { size: sizeBytes } = await stat(join(blobsDir(), name));
        return { isTemporary: TEMPORARY.test(name), sizeBytes };
      }),
    );
  }

  const refOf = ({ manifestDigest }: PublishedModule) =>
    `${registry.authority}/${REPOSITORY}@${manifestDigest}`;

  function step(module: PublishedModule): Step {
    return { module: { type: "OCI", oci: { ref: refOf(module) } } };
  }

  async function start(...flags: readonly string[]): Promise<Program> {
    const keyFile = join(programs.dir(), "key");
    // The same one for every program of a test.
    await writeFile(keyFile, "hunter2".padEnd(32), { flag: "wx" }).catch(
      () => null,
    );
    return await programs.start(["--artifact-key-file", keyFile, ...flags]);
  }

  /** Makes everything in a directory look as if it were written two hours ago. */
  async function age(directory: string): Promise<void> {
    const atS = (Date.now() - 2 * HOUR_MS) / 1000;
    for (const name of await readdir(directory))
      await utimes(join(directory, name), atS, atS);
  }

  async function ageAll(): Promise<void> {
    await age(blobsDir());
    await age(join(cacheDir(), "manifests"));
    const compiled = join(cacheDir(), "compiled");
    for (const name of await readdir(compiled)) await age(join(compiled, name));
  }

  it("[C37] uses nothing of a fetch that SIGKILL cut off", async () => {
    const wasm = await guest("v1/hello");
    const module = registry.addModule(REPOSITORY, { wasm });
    let isDripping = true;
    registry.intercept(({ method, path }) =>
      isDripping && method === "GET" && path.includes("/blobs/")
        ? {
            status: 200,
            headers: { "content-length": wasm.length },
            body: wasm.subarray(0, wasm.length - 1),
            ending: "hang",
          }
        : "pass",
    );
    const killed = await start();
    const unanswered = killed.call(step(module)).catch(() => null);
    await expect
      .poll(() => blobFiles(), { timeout: 20_000 })
      .toEqual([{ isTemporary: true, sizeBytes: wasm.length - 1 }]);
    await killed.kill();
    expect(await unanswered).toBeNull();
    isDripping = false;

    const second = await start();
    const { messages } = await second.call(step(module));
    await second.stop();

    expect(messages).toEqual(["hello world"]);
    expect(second.lines("blob fetched")).toHaveLength(1);
    const names = await readdir(blobsDir());
    expect(names.filter((name) => !TEMPORARY.test(name))).toEqual([
      fileNameOf(module.layerDigest),
    ]);
    // Somebody could be writing to it yet, until it is old.
    expect(names.filter((name) => TEMPORARY.test(name))).toHaveLength(1);

    await age(blobsDir());
    await registry.stop();
    const third = await start();

    expect((await third.call(step(module))).messages).toEqual(["hello world"]);
    expect(await readdir(blobsDir())).toEqual([fileNameOf(module.layerDigest)]);
  });

  it("[§6.4] serves two programs that load the same module at once", async () => {
    const wasm = await guest("v1/hello");
    const module = registry.addModule(REPOSITORY, { wasm });
    const { gate, letGo } = createGate();
    registry.intercept(async ({ method, path }) => {
      if (method === "GET" && path.includes("/blobs/")) await gate;
      return "pass" as const;
    });
    const both = [await start(), await start()];

    const answering = both.map((program) => program.call(step(module)));
    const blobGets = () =>
      registry.requests.filter(
        ({ method, path }) => method === "GET" && path.includes("/blobs/"),
      ).length;
    await expect.poll(blobGets, { timeout: 20_000 }).toBe(2);
    letGo();
    const answers = await Promise.all(answering);

    expect(answers.map(({ messages }) => messages)).toEqual([
      ["hello world"],
      ["hello world"],
    ]);
    expect(await readdir(blobsDir())).toEqual([fileNameOf(module.layerDigest)]);
    await registry.stop();
    for (const program of both) await program.stop();
    const third = await start();
    expect((await third.call(step(module))).messages).toEqual(["hello world"]);
  });

  it("[§6.4] sweeps what is old when --max-cache-size is exceeded, and nothing else", async () => {
    const old = registry.addModule(REPOSITORY, { wasm: padded(1) });
    const recent = registry.addModule(REPOSITORY, { wasm: padded(2) });
    const first = await start();
    await first.call(step(old));
    // What a program used counts as used until it stops.
    await first.stop();
    await ageAll();
    const another = await start();
    await another.call(step(recent));
    await another.stop();

    const second = await start("--max-cache-size", "1");
    await second.logged("cache swept");
    await registry.stop();

    expect(await readdir(blobsDir())).toEqual([fileNameOf(recent.layerDigest)]);
    expect((await second.call(step(recent))).messages).toEqual([]);
    expect((await second.call(step(old))).messages.join()).toContain(
      `${registry.authority}: connection refused`,
    );
  });

  it("[§6.4] does not sweep at its start what was used a moment before", async () => {
    const module = registry.addModule(REPOSITORY, { wasm: padded(2) });
    const first = await start();
    await first.call(step(module));
    // Shows when the sweep is done: it goes in any case.
    await writeFile(join(blobsDir(), fileNameOf(UNUSED)), "unused");
    await ageAll();
    // What counts is when it was used last, not when it was fetched.
    expect((await first.call(step(module))).messages).toEqual([]);
    await first.stop();
    await registry.stop();

    const second = await start("--max-cache-size", "1");
    await second.logged("cache swept");

    expect(await readdir(blobsDir())).toEqual([fileNameOf(module.layerDigest)]);
    expect((await second.call(step(module))).messages).toEqual([]);
  });

  it("[§6.4] does not sweep at its start what --warm-modules names", async () => {
    const module = registry.addModule(REPOSITORY, { wasm: padded(2) });
    const first = await start();
    await first.call(step(module));
    await writeFile(join(blobsDir(), fileNameOf(UNUSED)), "unused");
    await first.stop();
    await ageAll();
    await registry.stop();

    const second = await start(
      ...["--max-cache-size", "1"],
      ...["--warm-modules", refOf(module)],
    );
    await second.logged("ready");
    await second.logged("cache swept");

    expect(await readdir(blobsDir())).toEqual([fileNameOf(module.layerDigest)]);
    expect((await second.call(step(module))).messages).toEqual([]);
  });

  it.each([
    { name: "under a file", path: "file/cache" },
    { name: "where the system makes none", path: "/proc/function-wasm-cache" },
  ])("[§6.4] does not start when --cache-dir is $name", async ({ path }) => {
    await writeFile(join(programs.dir(), "file"), "");
    const asked = path.startsWith("/") ? path : join(programs.dir(), path);

    const { code, stderr } = await programs.startInVain(["--cache-dir", asked]);

    expect(code).toBe(1);
    expect(stderr).toMatch(/^function-wasm: [^\n]*[^.\n]\n$/u);
    expect(stderr).toContain("--cache-dir");
    expect(stderr).toContain(asked);
  });
});

/** A module of that size in MiB, and so with content of its own. */
function padded(mebibytes: number): Uint8Array {
  return assembleCoreModule({ customBytes: mebibytes * MIB });
}

function fileNameOf(digest: string): string {
  return digest.replace(":", "-");
}
