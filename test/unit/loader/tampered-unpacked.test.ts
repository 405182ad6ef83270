import { writeFileSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { pinned } from "./loading.js";
import { addImageOf, packed } from "./one-layer.js";
import { createRig, pull, type Rig, WASM } from "./pulling.js";
import { fileNameOf } from "./store/store-content.js";

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

describe("loader: a module that was unpacked", () => {
  it("[R4] is unpacked anew when its file was changed, without a question", async () => {
    const digest = addImageOf(packed(WASM), registry);
    const source = pinned(`${registry.authority}/a/b`, digest);
    const loading = rig.loader();
    const before = await pull(loading, source);
    await registry.stop();
    const file = path.join(rig.cacheDir, "blobs", fileNameOf(WASM));
    const change = () => writeFileSync(file, "\0asm\x01\0\0\0 hostile");

    change();
    const sameProcess = await pull(loading, source);
    change();
    const nextProcess = await pull(rig.loader(), source);

    expect(before.bytes).toEqual(WASM);
    expect([sameProcess, nextProcess]).toEqual([before, before]);
  });
});
