import { beforeEach, describe, expect, it } from "vitest";
import { refuse } from "../../../../src/loader/refuse.js";
import {
  type BlobStore,
  createBlobStore,
} from "../../../../src/loader/store/blob-store.js";
import { storeIfPossible } from "../../../../src/loader/store/store-if-possible.js";
import { handClock, makeDir, recordingLogger } from "./fixtures.js";
import { chunksOf, digestOf } from "./store-content.js";

const CONTENT = "content";
const DIGEST = digestOf(CONTENT);

let log: ReturnType<typeof recordingLogger>;
let store: BlobStore;

beforeEach(() => {
  log = recordingLogger();
  const options = { cacheDir: makeDir(), kind: "manifests" } as const;
  store = createBlobStore(options, handClock(), log.logger);
});

function keep(changed: Partial<BlobStore> = {}, content = CONTENT) {
  return storeIfPossible(
    { ...store, ...changed },
    DIGEST,
    chunksOf(content),
    log.logger,
  );
}

describe("loader/store/store-if-possible", () => {
  it("stores", async () => {
    await keep();

    const stored = await store.read(DIGEST, 100);
    expect(Buffer.from(stored ?? []).toString()).toBe(CONTENT);
    expect(log.lines).toEqual([]);
  });

  it("goes on without a disk that cannot be written, and says so", async () => {
    await keep({
      write: () => Promise.reject(refuse("cache-unwritable", "no space left")),
    });

    expect(log.lines).toEqual([
      {
        level: "warn",
        message: "cannot keep what was fetched",
        fields: { digest: DIGEST, reason: "no space left" },
      },
    ]);
  });

  it.each([
    { name: "a refusal", error: refuse("module-empty", "no bytes") },
    { name: "a fault", error: new TypeError("cache-unwritable") },
  ])("passes on $name", async ({ error }) => {
    await expect(keep({ write: () => Promise.reject(error) })).rejects.toBe(
      error,
    );
    expect(log.lines).toEqual([]);
  });

  it("stores nothing under the name of something else", async () => {
    await expect(keep({}, "other")).rejects.toMatchObject({
      code: "digest-mismatch",
    });
    expect(await store.read(DIGEST, 100)).toBeNull();
  });
});
