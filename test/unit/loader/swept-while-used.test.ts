import { readdirSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { startSweeper } from "../../../src/loader/store/sweeper.js";
import type { Clock, ModuleSource } from "../../../src/ports.js";
import { recordingLogger, recordingMetrics } from "../function/fixtures.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { atUrl, pinned, tagged, type TestLoader } from "./loading.js";
import { addImageOf, packed } from "./one-layer.js";
import { createRig, pull, type Rig, WASM } from "./pulling.js";
import { digestOf } from "./store/store-content.js";

const TWO_HOURS_MS = 7_200_000;
const MANIFEST = '{"abi":1}';
const UNUSED = digestOf("unused").replace(":", "-");

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

/** Sweeps once, with room for nothing, what looks as if it was written two hours ago. */
async function sweepAll({ loader }: TestLoader): Promise<void> {
  const blobs = path.join(rig.cacheDir, "blobs");
  writeFileSync(path.join(blobs, UNUSED), "unused");
  for (const { directory } of loader.directories())
    age(directory, readdirSync(directory));
  const { logger } = recordingLogger();
  const sweeper = startSweeper(
    {
      cacheDir: rig.cacheDir,
      directories: () => loader.directories(),
      maxBytes: 1,
      compiledDir: path.join(rig.cacheDir, "compiled"),
      usedSince: (atMs) => loader.usedSince(atMs),
    },
    clock,
    logger,
    recordingMetrics(),
  );
  await expect.poll(() => readdirSync(blobs)).not.toContain(UNUSED);
  await sweeper.close();
}

function age(directory: string, names: readonly string[]): void {
  const atS = (Date.now() - TWO_HOURS_MS) / 1000;
  for (const name of names) utimesSync(path.join(directory, name), atS, atS);
}

describe("loader: a sweep", () => {
  it.each<{ name: string; publish: () => ModuleSource }>([
    {
      name: "a pinned image with a manifest",
      publish() {
        const { manifestDigest } = registry.addModule("a/b", {
          wasm: WASM,
          manifest: MANIFEST,
        });
        return pinned(`${registry.authority}/a/b`, manifestDigest);
      },
    },
    {
      name: "a tag",
      publish() {
        registry.addModule("a/b", { wasm: WASM, tag: "v1" });
        return tagged(`${registry.authority}/a/b:v1`);
      },
    },
    {
      name: "a module in a tar archive",
      publish() {
        const digest = addImageOf(packed(WASM), registry);
        return pinned(`${registry.authority}/a/b`, digest);
      },
    },
    {
      name: "a URL with a manifest",
      publish() {
        registry.intercept(({ path: asked }) =>
          asked.endsWith(".json")
            ? { status: 200, body: MANIFEST }
            : { status: 200, body: WASM },
        );
        return atUrl(`${registry.url}/m.wasm`, digestOf(WASM), {
          href: `${registry.url}/m.json`,
          digest: digestOf(MANIFEST),
        });
      },
    },
  ])(
    "[R11] leaves all that $name in use needs to go on without a server",
    async ({ publish }) => {
      const source = publish();
      const first = rig.loader();
      const online = await pull(first, source);

      await sweepAll(first);
      await registry.stop();
      const offline = await pull(rig.loader(), source);

      expect(online.bytes).toEqual(WASM);
      expect(offline).toEqual(online);
    },
  );
});
