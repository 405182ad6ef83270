import type * as fsPromises from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { pinned } from "./loading.js";
import { addImageOf, packed } from "./one-layer.js";
import { asked, createRig, filesIn, pull, type Rig, WASM } from "./pulling.js";

/** Where a module does not fit, though half of it does; null = everywhere is room. */
const full = vi.hoisted((): { directory: string | null } => ({
  directory: null,
}));

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof fsPromises>();
  const open: typeof real.open = async (filePath, ...rest) => {
    const handle = await real.open(filePath, ...rest);
    if (path.dirname(String(filePath)) !== full.directory) return handle;
    const writeFile = handle.writeFile.bind(handle);
    handle.writeFile = async (data) => {
      const bytes = data as Uint8Array;
      const isModule = WASM.subarray(0, 4).equals(bytes.subarray(0, 4));
      if (isModule) {
        await writeFile(bytes.subarray(0, bytes.length >> 1));
        throw Object.assign(new Error("full"), { code: "ENOSPC" });
      }
      await writeFile(bytes);
    };
    return handle;
  };
  return { ...real, open };
});

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
  full.directory = path.join(rig.cacheDir, "blobs");
});

afterEach(async () => {
  full.directory = null;
  await rig.close();
});

describe("loader: a disk that gets full in the middle of a file", () => {
  it.each([
    {
      name: "a module is fetched",
      layer: { mediaType: "application/wasm", bytes: WASM },
      wantGets: 2,
    },
    {
      name: "a module is unpacked",
      layer: packed(WASM),
      wantGets: 1,
    },
  ])(
    "[§6.4] [R12] fails no request when $name: what is written goes elsewhere",
    async ({ layer, wantGets }) => {
      const digest = addImageOf(layer, registry);
      const source = pinned(`${registry.authority}/a/b`, digest);
      const loading = rig.loader();

      const first = await pull(loading, source);
      const again = await pull(loading, source);

      expect([first.bytes, again.bytes]).toEqual([WASM, WASM]);
      const gets = asked(registry).filter((each) => each === "GET blobs");
      expect(gets).toHaveLength(wantGets);
      const messages = loading.lines.map(({ message }) => message);
      expect(messages).toContain(
        "cannot write to the cache directory, what is fetched goes to a temporary one",
      );
      // Nothing is left of the half.
      const names = [...(await filesIn(rig.cacheDir)).keys()];
      expect(names.filter((each) => each.includes(".tmp-"))).toEqual([]);
    },
  );
});
