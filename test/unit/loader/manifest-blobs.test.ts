import { beforeEach, describe, expect, it } from "vitest";
import { type BlobOrigin } from "../../../src/loader/blobs.js";
import {
  createManifestBlobs,
  type ManifestBlobs,
} from "../../../src/loader/manifest-blobs.js";
import { refuse } from "../../../src/loader/refuse.js";
import {
  type BlobStore,
  createBlobStore,
} from "../../../src/loader/store/blob-store.js";
import type { Digest } from "../../../src/ports.js";
import { openScope } from "./loading.js";
import { handClock, makeDir, recordingLogger } from "./store/fixtures.js";
import { chunksOf, digestOf } from "./store/store-content.js";

const CONTENT = '{"abi":1}';
const DIGEST = digestOf(CONTENT);

let cacheDir: string;
let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;
let store: BlobStore;
let manifests: ManifestBlobs;

beforeEach(() => {
  cacheDir = makeDir();
  clock = handClock();
  log = recordingLogger();
  open();
});

/** As a process that starts on the same cache. */
function open(write?: BlobStore["write"]): void {
  store = createBlobStore({ cacheDir, kind: "manifests" }, clock, log.logger);
  const used = write === undefined ? store : { ...store, write };
  manifests = createManifestBlobs(used, clock, log.logger);
}

/** An origin that delivers these texts, one for each fetch, and what was asked of it. */
function origin(
  contents: readonly string[],
  overrides: Partial<BlobOrigin> = {},
): BlobOrigin & { readonly seen: string[] } {
  const left = [...contents];
  const seen: string[] = [];
  return {
    type: "oci",
    key: "anonymous h.test/a/b",
    mustDeliver: () => Promise.resolve(false),
    seen,
    fetch() {
      seen.push("fetch");
      const content = left.shift();
      if (content === undefined)
        return Promise.reject(refuse("module-not-found", "h.test: 404"));
      return Promise.resolve({
        chunks: chunksOf(content.slice(0, 3), content.slice(3)),
        sentOnTo: null,
        discard: () => Promise.resolve(),
        verified() {
          seen.push("verified");
          return Promise.resolve();
        },
      });
    },
    ...overrides,
  };
}

async function textFrom(from: BlobOrigin, digest: Digest = DIGEST) {
  const {
    form,
    bytes,
    digest: got,
  } = await manifests.obtain(digest, "layer", from, openScope());
  return [form, Buffer.from(bytes).toString(), got];
}

describe("loader/manifest-blobs", () => {
  it("fetches once, and then has it in memory", async () => {
    const from = origin([CONTENT]);

    const first = await textFrom(from);
    await store.write(null, chunksOf("another"));
    const again = await manifests.obtain(DIGEST, "file", from, openScope());

    expect(first).toEqual(["layer", CONTENT, DIGEST]);
    expect(again.form).toBe("file");
    expect(from.seen).toEqual(["fetch", "verified"]);
  });

  it("finds on the disk what an earlier process fetched", async () => {
    await textFrom(origin([CONTENT]));
    open();
    const from = origin([]);

    expect(await textFrom(from)).toEqual(["layer", CONTENT, DIGEST]);
    expect(from.seen).toEqual([]);
  });

  it("fetches what must be delivered, in memory or not", async () => {
    await textFrom(origin([CONTENT]));
    const mustDeliver = () => Promise.resolve(true);
    const good = origin([CONTENT], { mustDeliver });
    const bad = origin([], { mustDeliver, key: "another place" });

    expect(await textFrom(good)).toEqual(["layer", CONTENT, DIGEST]);
    await expect(textFrom(bad)).rejects.toMatchObject({
      code: "module-not-found",
    });

    expect(good.seen).toEqual(["fetch", "verified"]);
  });

  it("refuses other bytes than the digest's, keeps none of them and proves nothing", async () => {
    const from = origin(["{}", CONTENT]);

    await expect(textFrom(from)).rejects.toMatchObject({
      code: "digest-mismatch",
      message: `its manifest: expected ${DIGEST}, got ${digestOf("{}")}`,
    });

    expect(from.seen).toEqual(["fetch"]);
    expect(await store.read(digestOf("{}"), 100)).toBeNull();
    expect(await store.read(DIGEST, 100)).toBeNull();
    clock.advance(5_000);
    expect(await textFrom(from)).toEqual(["layer", CONTENT, DIGEST]);
  });

  it("has no second try for what is small", async () => {
    const failure = refuse("registry-unreachable", "h.test: it broke");
    let fetches = 0;
    const from = origin([], {
      fetch() {
        fetches += 1;
        return Promise.reject(failure);
      },
    });

    await expect(textFrom(from)).rejects.toBe(failure);
    await expect(textFrom(from)).rejects.toBe(failure);

    expect(fetches).toBe(1);
  });

  it("does without a disk that cannot be written, and says so", async () => {
    open(() => Promise.reject(refuse("cache-unwritable", "ENOSPC")));
    const from = origin([CONTENT]);

    await textFrom(from);
    await textFrom(from);

    expect(from.seen).toEqual(["fetch", "verified"]);
    expect(log.lines).toMatchObject([
      { level: "warn", message: "cannot keep what was fetched" },
    ]);
  });

  it("has what is empty, too", async () => {
    const from = origin([""]);
    const digest = digestOf("");

    await textFrom(from, digest);

    expect(await textFrom(from, digest)).toEqual(["layer", "", digest]);
    expect(from.seen).toEqual(["fetch", "verified"]);
  });
});
