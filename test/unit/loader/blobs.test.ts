import { readFileSync, writeFileSync } from "node:fs";
import { beforeEach, describe, expect, it } from "vitest";
import {
  type BlobOrigin,
  type Blobs,
  createBlobs,
  type Delivery,
} from "../../../src/loader/blobs.js";
import { refuse } from "../../../src/loader/refuse.js";
import {
  type BlobStore,
  createBlobStore,
} from "../../../src/loader/store/blob-store.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { recordingMetrics } from "../function/fixtures.js";
import { openScope } from "./loading.js";
import { handClock, makeDir, recordingLogger } from "./store/fixtures.js";
import { chunksOf, digestOf } from "./store/store-content.js";

const CONTENT = "\0asm a module";
const DIGEST = digestOf(CONTENT);
const lost = refuse("registry-unreachable", "h.test: the connection broke");

let clock: ReturnType<typeof handClock>;
let log: ReturnType<typeof recordingLogger>;
let metrics: ReturnType<typeof recordingMetrics>;
let store: BlobStore;
let blobs: Blobs;

let discards: number;

beforeEach(() => {
  discards = 0;
  clock = handClock();
  log = recordingLogger();
  metrics = recordingMetrics();
  const options = { cacheDir: makeDir(), kind: "blobs" } as const;
  store = createBlobStore(options, clock, log.logger);
  blobs = createBlobs(store, clock, log.logger, metrics);
});

/** What {@link origin} does for one fetch: gives these chunks, and then, or before, throws. */
interface Try {
  readonly chunks?: readonly string[];
  readonly failure?: Error;
  readonly isRefused?: true;
  readonly sentOnTo?: string;
  /** How long it takes. */
  readonly ms?: number;
}

/** An origin whose fetches go as scripted, and what was asked of it. */
function origin(
  tries: readonly Try[],
  overrides: Partial<BlobOrigin> = {},
): BlobOrigin & { readonly seen: string[] } {
  const left = [...tries];
  const seen: string[] = [];
  return {
    type: "oci",
    key: "anonymous h.test/a/b",
    mustDeliver: notNeeded,
    seen,
    fetch(): Promise<Delivery> {
      seen.push("fetch");
      const next = left.shift();
      if (next === undefined) throw new Error("one fetch too many");
      clock.advance(next.ms ?? 0);
      if (next.isRefused) return Promise.reject(next.failure ?? lost);
      return Promise.resolve({
        chunks: chunksThen(next),
        sentOnTo: next.sentOnTo ?? null,
        verified() {
          seen.push("verified");
          return Promise.resolve();
        },
        discard() {
          discards += 1;
          return Promise.resolve();
        },
      });
    },
    ...overrides,
  };
}

const needed = () => Promise.resolve(true);
const notNeeded = () => Promise.resolve(false);

async function* chunksThen({ chunks = [CONTENT], failure }: Try) {
  yield* chunksOf(...chunks);
  if (failure !== undefined) throw failure;
}

async function keep(): Promise<void> {
  await store.write(DIGEST, chunksOf(CONTENT));
}

describe("loader/blobs", () => {
  it("takes what is here, counts a hit and asks nobody", async () => {
    await keep();
    const from = origin([]);

    const { filePath, sizeBytes } = await blobs.obtain(
      DIGEST,
      from,
      openScope(),
    );

    expect(readFileSync(filePath, "utf8")).toBe(CONTENT);
    expect(sizeBytes).toBe(CONTENT.length);
    expect(metrics.counted).toEqual(["blob hit"]);
    expect(from.seen).toEqual([]);
  });

  it.each(["oci", "http"] as const)(
    "fetches what is not here from %s, counts it, and has it from then on",
    async (type) => {
      const from = origin([{ chunks: ["\0asm a ", "module"], ms: 1_500 }], {
        type,
      });

      const { filePath } = await blobs.obtain(DIGEST, from, openScope());
      await blobs.obtain(DIGEST, from, openScope());

      expect(readFileSync(filePath, "utf8")).toBe(CONTENT);
      expect(metrics.counted).toEqual([
        "blob miss",
        `fetched ${type}`,
        "blob hit",
      ]);
      expect(from.seen).toEqual(["fetch", "verified"]);
      expect(log.lines).toEqual([
        {
          level: "info",
          message: "blob fetched",
          fields: {
            digest: DIGEST,
            sizeBytes: CONTENT.length,
            source: type,
            elapsedMs: 1_500,
          },
        },
      ]);
    },
  );

  it("fetches again what is not what its name says", async () => {
    await keep();
    const { filePath } = await blobs.obtain(DIGEST, origin([]), openScope());
    writeFileSync(filePath, "something else");

    await blobs.obtain(DIGEST, origin([{}]), openScope());

    expect(readFileSync(filePath, "utf8")).toBe(CONTENT);
  });

  it("fetches what must be delivered though it is here, and counts that as a miss", async () => {
    await keep();
    const from = origin([{}], { mustDeliver: needed });

    await blobs.obtain(DIGEST, from, openScope());

    expect(from.seen).toEqual(["fetch", "verified"]);
    expect(metrics.counted).toEqual(["blob miss", "fetched oci"]);
  });

  it("fails when what must be delivered is not, though it is here", async () => {
    await keep();
    const failure = refuse("module-not-found", "h.test: 404");
    const from = origin([{ isRefused: true, failure }], {
      mustDeliver: needed,
    });

    await expect(blobs.obtain(DIGEST, from, openScope())).rejects.toBe(failure);
  });

  it("tries once more when the connection breaks in the middle, from the beginning", async () => {
    const from = origin([{ chunks: ["\0asm"], failure: lost }, {}]);

    const { filePath } = await blobs.obtain(DIGEST, from, openScope());

    expect(readFileSync(filePath, "utf8")).toBe(CONTENT);
    expect(from.seen).toEqual(["fetch", "fetch", "verified"]);
    expect(metrics.counted).toEqual(["blob miss", "fetched oci"]);
    expect(log.lines).toContainEqual({
      level: "warn",
      message: "fetching a blob again",
      fields: { digest: DIGEST, reason: "h.test: the connection broke" },
    });
  });

  it("does not try a third time", async () => {
    const again = refuse("registry-unreachable", "h.test: it broke again");
    const from = origin([
      { chunks: ["\0asm"], failure: lost },
      { chunks: ["\0asm"], failure: again },
    ]);

    await expect(blobs.obtain(DIGEST, from, openScope())).rejects.toBe(again);

    expect(from.seen).toEqual(["fetch", "fetch"]);
    expect(metrics.counted).toEqual(["blob miss"]);
  });

  it.each([
    {
      name: "other bytes than the digest's",
      once: { chunks: ["other"] },
      want: {
        code: "digest-mismatch",
        message: `expected ${DIGEST}, got ${digestOf("other")}`,
      },
    },
    {
      name: "too many bytes",
      once: { failure: refuse("answer-too-large", "h.test: too large") },
      want: { code: "answer-too-large" },
    },
    {
      name: "a refusal",
      once: {
        isRefused: true,
        failure: refuse("registry-auth-failed", "h.test: 401"),
      },
      want: { code: "registry-auth-failed" },
    },
    {
      // The client below has tried that itself, more than once.
      name: "no answer at all",
      once: { isRefused: true, failure: lost },
      want: { code: "registry-unreachable" },
    },
    {
      name: "a fault of ours",
      once: { failure: new TypeError("x is undefined") },
      want: { message: "x is undefined" },
    },
  ] satisfies { name: string; once: Try; want: object }[])(
    "does not try again after $name, and proves nothing",
    async ({ once, want }) => {
      const from = origin([once, {}]);

      const obtained = blobs.obtain(DIGEST, from, openScope());

      await expect(obtained).rejects.toMatchObject(want);
      expect(from.seen).toEqual(["fetch"]);
      expect(await store.find(DIGEST, null)).toBeNull();
    },
  );

  it("does not try again when its ten minutes are over", async () => {
    const from = origin([{ chunks: ["\0asm"], failure: lost, ms: 600_000 }]);

    await expect(blobs.obtain(DIGEST, from, openScope())).rejects.toBe(lost);

    expect(from.seen).toEqual(["fetch"]);
  });

  it("shares one fetch among all who ask at once, and one failure for five seconds", async () => {
    const failure = refuse("module-not-found", "h.test: 404");
    const from = origin([{ isRefused: true, failure }, {}]);
    const ask = () => blobs.obtain(DIGEST, from, openScope());

    const outcomes = await Promise.allSettled([ask(), ask()]);
    clock.advance(4_999);
    await expect(ask()).rejects.toBe(failure);
    expect(from.seen).toEqual(["fetch"]);
    clock.advance(1);
    await ask();

    expect(outcomes.map(({ status }) => status)).toEqual([
      "rejected",
      "rejected",
    ]);
    expect(from.seen).toEqual(["fetch", "fetch", "verified"]);
  });

  it("throws away what the store did not take", async () => {
    const full = refuse("cache-unwritable", "the disk is full");
    const failing: BlobStore = { ...store, write: () => Promise.reject(full) };
    const from = origin([{}, {}]);

    await expect(
      createBlobs(failing, clock, log.logger, metrics).obtain(
        DIGEST,
        from,
        openScope(),
      ),
    ).rejects.toBe(full);
    expect(discards).toBe(2);
    expect(from.seen).toEqual(["fetch", "fetch"]);
  });

  it("does not tell what lies where the registry sent on to", async () => {
    const from = origin([
      { chunks: ["crown of hunter2"], sentOnTo: "inside.test" },
    ]);

    await expect(blobs.obtain(DIGEST, from, openScope())).rejects.toMatchObject(
      {
        code: "digest-mismatch",
        message:
          "inside.test, where the registry sent on to, has not the bytes of the digest",
      },
    );
  });

  it("has nobody wait longer than his request, and goes on for the next", async () => {
    let deliver = (): void => undefined;
    const slow = new Promise<void>((resolve) => (deliver = resolve));
    const from = origin([], {
      async fetch() {
        await slow;
        return {
          chunks: chunksOf(CONTENT),
          sentOnTo: null,
          verified: () => Promise.resolve(),
          discard: () => Promise.resolve(),
        };
      },
    });
    const caller = createRequestScope({ deadlineAtMs: Infinity });

    const going = blobs.obtain(DIGEST, from, caller);
    const staying = blobs.obtain(DIGEST, from, openScope());
    caller.cancel();

    await expect(going).rejects.toMatchObject({ code: "resolve-cancelled" });
    deliver();
    expect((await staying).digest).toBe(DIGEST);
  });

  it("fetches once what must be delivered once", async () => {
    await keep();
    let isProved = false;
    const from = origin([{}], {
      mustDeliver: () => Promise.resolve(!isProved),
    });
    const fetch = from.fetch.bind(from);
    const proving: BlobOrigin = {
      ...from,
      async fetch(scope) {
        return {
          ...(await fetch(scope)),
          verified() {
            isProved = true;
            return Promise.resolve();
          },
        };
      },
    };
    const ask = () => blobs.obtain(DIGEST, proving, openScope());

    await Promise.all([ask(), ask()]);
    await ask();

    expect(from.seen).toEqual(["fetch"]);
    expect(metrics.counted).toEqual(["blob miss", "fetched oci", "blob hit"]);
  });

  it("has a fetch for each place and each who asks", async () => {
    const failure = refuse("registry-auth-failed", "h.test: 401");
    const mine = origin([{ isRefused: true, failure }]);
    const other = origin([{}], { key: "me h.test/a/b" });

    const outcomes = await Promise.allSettled([
      blobs.obtain(DIGEST, mine, openScope()),
      blobs.obtain(DIGEST, other, openScope()),
    ]);

    expect(outcomes.map(({ status }) => status)).toEqual([
      "rejected",
      "fulfilled",
    ]);
  });
});
