import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LoaderError } from "../../../src/loader/index.js";
import type { ModuleSource } from "../../../src/ports.js";
import { createTestLoader, openScope } from "./loading.js";

const NOTHING = { credentialOf: () => null, redirectFence: null };

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "loader-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("loader/loader", () => {
  it("finds a file where it lies, and says that it was used", async () => {
    writeFileSync(path.join(dir, "a.wasm"), "module");
    const { loader } = open({ moduleDir: dir });

    const found = await loader.resolve(at("a.wasm"), NOTHING, openScope());

    const { digest, description } = found.module;
    const filePath = path.join(dir, "a.wasm");
    expect(description).toBe("Path a.wasm");
    expect(await found.module.locate()).toEqual({
      digest,
      description,
      filePath,
      sizeBytes: 6,
    });
    expect(found.manifestDigest).toBeNull();
    expect(found.warning).toBeNull();
    expect(await found.readManifest(openScope())).toBeNull();
    expect([...loader.usedSince(-Infinity)]).toEqual([digest]);
  });

  it("reads the manifest that a Path source names", async () => {
    writeFileSync(path.join(dir, "a.wasm"), "module");
    writeFileSync(path.join(dir, "a.yaml"), "abi: 1");
    const { loader } = open({ moduleDir: dir });

    const found = await loader.resolve(
      at("a.wasm", "a.yaml"),
      NOTHING,
      openScope(),
    );

    expect(await found.readManifest(openScope())).toMatchObject({
      form: "file",
      bytes: Buffer.from("abi: 1"),
    });
  });

  it("counts a file that is read and hashed, not its manifest nor what is remembered", async () => {
    const file = path.join(dir, "a.wasm");
    writeFileSync(file, "module");
    writeFileSync(path.join(dir, "a.yaml"), "abi: 1");
    const world = open({ moduleDir: dir });
    const { loader, counted } = world;
    // Written this recently, they would not be remembered.
    world.advance(3_600_000);
    const resolve = async () => {
      const source = at("a.wasm", "a.yaml");
      const found = await loader.resolve(source, NOTHING, openScope());
      await found.readManifest(openScope());
      return counted;
    };

    expect(await resolve()).toEqual(["fetched path"]);
    world.advance(10_000);
    expect(await resolve()).toEqual(["fetched path"]);
    writeFileSync(file, "another");
    expect(await resolve()).toEqual(["fetched path", "fetched path"]);
  });

  it("refuses a Path source without --module-dir", async () => {
    const { loader } = open({ moduleDir: null });

    const refusal = loader.resolve(at("a.wasm"), NOTHING, openScope());

    await expect(refusal).rejects.toThrow(LoaderError);
    await expect(refusal).rejects.toMatchObject({
      code: "module-dir-unset",
      message:
        "cannot resolve module: module Path a.wasm: the runtime has no --module-dir",
    });
  });

  it("says where blobs and manifests lie", () => {
    const { loader } = open({ moduleDir: null });

    expect(loader.directories()).toEqual([
      { kind: "blob", directory: path.join(dir, "cache/blobs") },
      { kind: "manifest", directory: path.join(dir, "cache/manifests") },
    ]);
  });

  it("does not open where its caches cannot be made", () => {
    writeFileSync(path.join(dir, "cache"), "a file");

    expect(() => open({ moduleDir: null })).toThrow(
      expect.objectContaining({ code: "cache-unwritable" }),
    );
  });
});

function open(options: { readonly moduleDir: string | null }) {
  return createTestLoader({ cacheDir: path.join(dir, "cache"), ...options });
}

function at(file: string, manifestPath: string | null = null): ModuleSource {
  return { type: "Path", path: file, manifestPath };
}
