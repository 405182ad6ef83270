import { describe, expect, it, vi } from "vitest";

import { createManifestCache } from "../../../../src/admission/manifest/manifest-cache.js";
import { readManifest } from "../../../../src/admission/manifest/read-manifest.js";
import type { Digest, ManifestBytes } from "../../../../src/ports.js";
import { utf8 } from "./fixtures.js";

describe("admission/manifest/manifest-cache", () => {
  it("reads a manifest once", () => {
    const { cache, read } = countingCache();

    const first = cache.get(manifest(1));
    const second = cache.get(manifest(1));

    expect(first).toEqual(readManifest("layer", manifest(1).bytes));
    expect(second).toBe(first);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("remembers a failure, too", () => {
    const { cache, read } = countingCache();
    const broken = { ...manifest(1), bytes: utf8("{}") };

    expect(cache.get(broken)).toEqual({
      kind: "error",
      message: "abi is required",
    });
    expect(cache.get(broken)).toMatchObject({ kind: "error" });
    expect(read).toHaveBeenCalledTimes(1);
  });

  it("reads both forms of the same bytes: they are not equally strict", () => {
    const { cache } = countingCache();
    const layer = { ...manifest(1), bytes: utf8('{"abi": 2, "later": 1}') };

    expect(cache.get(layer).kind).toBe("ok");
    expect(cache.get({ ...layer, form: "file" }).kind).toBe("error");
    expect(cache.get(layer).kind).toBe("ok");
  });

  it("reads manifests of other digests", () => {
    const { cache, read } = countingCache();

    cache.get(manifest(1));
    cache.get(manifest(2));

    expect(read).toHaveBeenCalledTimes(2);
  });

  it("forgets the one used longest ago, of more than 256", () => {
    const { cache, read } = countingCache();
    for (let n = 0; n < 256; n++) cache.get(manifest(n));
    cache.get(manifest(0));

    cache.get(manifest(256));

    expect(read).toHaveBeenCalledTimes(257);
    cache.get(manifest(0));
    expect(read).toHaveBeenCalledTimes(257);
    cache.get(manifest(1));
    expect(read).toHaveBeenCalledTimes(258);
  });

  it("keeps 2 MiB of manifests at most", () => {
    const { cache, read } = countingCache();
    const bytes = utf8(`{"abi": 2}${" ".repeat(64 * 1024 - 10)}`);
    for (let n = 0; n < 32; n++) cache.get({ ...manifest(n), bytes });
    cache.get({ ...manifest(0), bytes });
    expect(read).toHaveBeenCalledTimes(32);

    cache.get(manifest(32));

    cache.get({ ...manifest(1), bytes });
    expect(read).toHaveBeenCalledTimes(34);
  });

  it("takes a manifest of no bytes, or of more than it remembers", () => {
    const { cache } = countingCache();

    expect(cache.get({ ...manifest(1), bytes: new Uint8Array() }).kind).toBe(
      "error",
    );
    expect(
      cache.get({ ...manifest(2), bytes: new Uint8Array(3 * 1024 * 1024) }),
    ).toMatchObject({ kind: "error" });
  });
});

function countingCache() {
  const read = vi.fn(readManifest);
  return { cache: createManifestCache(read), read };
}

function manifest(n: number): ManifestBytes {
  const digest: Digest = `sha256:${n.toString(16).padStart(64, "0")}`;
  return { form: "layer", digest, bytes: utf8('{"abi": 2}') };
}
