import { rmSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import {
  answerTag,
  NOWHERE,
  openTagWorld,
  openWarmWorld,
  refusalOf,
  status,
} from "./tag-world.js";

const HOUR_MS = 3_600_000;

describe("loader/oci/tags: what it falls back to", () => {
  describe("without anything to fall back to", () => {
    it("[§9 ErrorPaths] nothing is known of the tag", async () => {
      const world = await openTagWorld();
      await world.registry.stop();
      const loader = world.open();

      const [unpinned, expecting] = await Promise.all([
        refusalOf(loader.load()),
        refusalOf(loader.load({ expectedDigest: NOWHERE })),
      ]);

      expect(unpinned.code).toBe("registry-unreachable");
      expect(unpinned.message).toBe(
        `cannot resolve module: module OCI ${world.ref}: ${world.registry.authority}: connection refused (ECONNREFUSED); no earlier resolution of the tag is known`,
      );
      expect(expecting.code).toBe("registry-unreachable");
      expect(expecting.message).toMatch(
        new RegExp(
          `module.oci.expectedDigest ${NOWHERE} is not in the cache for this step$`,
        ),
      );
    });

    it("the pointer is here, what it points to is not", async () => {
      const { world, digest } = await openWarmWorld();
      rmSync(path.join(world.cacheDir, "manifests"), { recursive: true });
      const loader = world.open();
      answerTag(world, () => status(503));

      const unpinned = await refusalOf(loader.load());
      const expecting = await refusalOf(
        loader.load({ expectedDigest: digest }),
      );

      expect(unpinned.code).toBe("registry-unreachable");
      expect(unpinned.message).toMatch(
        new RegExp(`the tag led to ${digest} \\d s ago, which is not in`),
      );
      expect(expecting.code).toBe("registry-unreachable");
      expect(expecting.message).toMatch(/ is not in the cache for this step$/u);
    });

    it.each([
      { name: "another repository", at: (host: string) => `${host}/a/c:v1` },
      { name: "another tag", at: (host: string) => `${host}/a/b:v2` },
      {
        name: "a tag in another case",
        at: (host: string) => `${host}/a/b:V1`,
      },
      {
        name: "another registry",
        at: (host: string) =>
          `${host.replace("127.0.0.1", "localhost")}/a/b:v1`,
      },
    ])("[R3] the pointer is of $name", async ({ at }) => {
      const { world, loader } = await openWarmWorld();
      world.registry.intercept(() => status(503));

      const refusal = await refusalOf(
        loader.load({}, at(world.registry.authority)),
      );

      expect(refusal.message).toMatch(
        /no earlier resolution of the tag is known$/u,
      );
    });
  });

  describe("staleness", () => {
    it("[R15] is bounded without an expectation only", async () => {
      const { world, digest, loader } = await openWarmWorld();
      answerTag(world, () => status(503));

      loader.advance(HOUR_MS - 60_000);
      expect((await loader.load()).warning).toMatch(
        new RegExp(`using ${digest}, which the tag led to 354\\d s ago$`, "u"),
      );
      loader.advance(61_000);
      const refusal = await refusalOf(loader.load());
      const expecting = await loader.load({ expectedDigest: digest });

      expect(refusal.code).toBe("registry-unreachable");
      expect(refusal.message).toMatch(
        new RegExp(
          `HTTP 503 .*; the tag led to ${digest} 360\\d s ago, --max-tag-staleness allows 3600 s$`,
          "u",
        ),
      );
      expect(expecting.content).toBe("one");
    });

    it("[R15] 0 allows none", async () => {
      const { world, digest } = await openWarmWorld();
      const loader = world.open({
        tags: { resolveIntervalMs: 0, maxStalenessMs: 0 },
      });
      answerTag(world, () => status(503));

      const refusal = await refusalOf(loader.load());
      const expecting = await loader.load({ expectedDigest: digest });

      expect(refusal.code).toBe("registry-unreachable");
      expect(refusal.message).toMatch(
        /; --max-tag-staleness 0 allows no earlier resolution$/u,
      );
      expect(expecting.content).toBe("one");
    });

    it("null allows none, and is no flag's value", async () => {
      const { world, digest } = await openWarmWorld();
      const loader = world.open({
        tags: { resolveIntervalMs: 0, maxStalenessMs: null },
      });
      answerTag(world, () => status(503));

      const refusal = await refusalOf(loader.load());
      const expecting = await loader.load({ expectedDigest: digest });

      expect(refusal.code).toBe("registry-unreachable");
      expect(refusal.message).toMatch(/: HTTP 503 [^;]*$/u);
      expect(expecting.content).toBe("one");
    });
  });

  it("[R15] warns once per change, and tells when the registry answers again", async () => {
    const { world, digest, loader } = await openWarmWorld();
    let isDown = true;
    answerTag(world, () => (isDown ? status(503) : "pass"));
    const warnings = async () => [
      (await loader.load()).warning,
      (await loader.load()).warning,
    ];

    expect(await warnings()).toEqual([
      expect.stringContaining(`using ${digest}`),
      null,
    ]);
    // Another process gets an answer: what the tag leads to here is something else now.
    isDown = false;
    loader.advance(5_001);
    const second = world.publish("two").manifestDigest;
    await world.open().load();
    isDown = true;
    expect(await warnings()).toEqual([
      expect.stringContaining(`using ${second}`),
      null,
    ]);
    isDown = false;
    loader.advance(5_001);
    expect(await warnings()).toEqual([null, null]);
    isDown = true;
    expect(await warnings()).toEqual([
      expect.stringContaining(`using ${second}`),
      null,
    ]);

    const key = world.ref;
    const stale = {
      level: "warn",
      message:
        "the registry gives no answer, a tag's last known digest is used",
    };
    const reason = `${world.registry.authority}: HTTP 503 Service Unavailable, asks to wait 60 s`;
    const ageMs = expect.any(Number) as number;
    expect(loader.lines).toEqual([
      { ...stale, fields: { ref: key, digest, ageMs, reason } },
      { ...stale, fields: { ref: key, digest: second, ageMs, reason } },
      {
        level: "info",
        fields: { ref: key, digest: second },
        message: "the registry answers again",
      },
      { ...stale, fields: { ref: key, digest: second, ageMs, reason } },
    ]);
    expect(loader.counted.filter((line) => line.startsWith("tag"))).toEqual([
      ...Array<string>(4).fill("tag pointer"),
      ...Array<string>(2).fill("tag registry"),
      ...Array<string>(2).fill("tag pointer"),
    ]);
  });
});
