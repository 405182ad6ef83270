import { writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { sourceParsers } from "../../support/source-parsers.js";
import { openScope } from "./loading.js";
import {
  answerTag,
  createGate,
  NOWHERE,
  openTagWorld,
  openWarmWorld,
  refusalOf,
  status,
} from "./tag-world.js";

describe("loader: a tag and the digest it is expected to lead to", () => {
  it("[§9 true digest accepted] is loaded when it does", async () => {
    const world = await openTagWorld();
    const { manifestDigest, layerDigest } = world.publish("one");

    const loaded = await world.open().load({ expectedDigest: manifestDigest });

    expect(loaded).toEqual({ manifestDigest, warning: null, content: "one" });
    // [R6] [R7] One question about the tag, and what it brought is what counts.
    expect(world.requests()).toEqual([
      "GET manifests/v1",
      `GET blobs/${layerDigest}`,
    ]);
  });

  it("[§9 ExpectedDigestMismatch] is refused when it does not, nothing is fetched or written down", async () => {
    const world = await openTagWorld();
    const { manifestDigest } = world.publish("one");
    const loader = world.open();
    const before = world.cached();

    const refusal = await refusalOf(loader.load({ expectedDigest: NOWHERE }));

    expect(refusal.code).toBe("expected-digest-mismatch");
    expect(refusal.message).toBe(
      `cannot resolve module: module OCI ${world.ref}: the tag leads to ${manifestDigest}, module.oci.expectedDigest is ${NOWHERE}`,
    );
    expect(world.requests()).toEqual(["GET manifests/v1"]);
    expect(world.cached()).toEqual(before);
    // What was not written down is nothing to fall back to either.
    answerTag(world, () => status(503));
    expect((await refusalOf(loader.load())).message).toMatch(
      /no earlier resolution of the tag is known$/u,
    );
  });

  it("is refused though the expected module is in the cache and in the registry", async () => {
    const { world, digest, loader } = await openWarmWorld();
    const second = world.publish("two").manifestDigest;
    const before = world.cached();

    const refusal = await refusalOf(loader.load({ expectedDigest: digest }));

    expect(refusal.code).toBe("expected-digest-mismatch");
    expect(refusal.message).toContain(`leads to ${second}`);
    expect(world.requests().slice(2)).toEqual(["GET manifests/v1"]);
    expect(world.cached()).toEqual(before);
    // The pinned reference is another matter.
    const at = `${world.registry.authority}/a/b@${digest}`;
    expect((await loader.load({}, at)).content).toBe("one");
  });

  it("is judged for each of several who ask at once", async () => {
    const world = await openTagWorld();
    const { manifestDigest } = world.publish("one");
    const loader = world.open();

    const [right, wrong, any] = await Promise.all([
      loader.load({ expectedDigest: manifestDigest }),
      refusalOf(loader.load({ expectedDigest: NOWHERE })),
      loader.load(),
    ]);

    expect([right.content, any.content]).toEqual(["one", "one"]);
    expect(wrong.code).toBe("expected-digest-mismatch");
    expect(world.requests()).toHaveLength(2);
  });

  it("[R19] an index is refused by name, also when its digest is expected", async () => {
    const world = await openTagWorld();
    const { manifestDigest } = world.publish("one");
    const expectedDigest = world.registry.addManifest(
      "a/b",
      {
        schemaVersion: 2,
        mediaType: "application/vnd.oci.image.index.v1+json",
        manifests: [{ digest: manifestDigest }],
      },
      "v1",
    );
    const loader = world.open();
    const before = world.cached();

    const refusals = await Promise.all([
      refusalOf(loader.load()),
      refusalOf(loader.load({ expectedDigest })),
    ]);

    expect(refusals.map(({ code }) => code)).toEqual([
      "artifact-invalid",
      "artifact-invalid",
    ]);
    for (const { message } of refusals)
      expect(message).toMatch(
        new RegExp(
          `leads to an image index \\(.*pin the digest of one manifest in it: ${manifestDigest}$`,
          "u",
        ),
      );
    expect(world.cached()).toEqual(before);
  });

  it.each([
    { name: "sha512", text: `sha512:${"a".repeat(128)}` },
    { name: "sha384", text: `sha384:${"a".repeat(96)}` },
  ])("[R17] $name can never match, and is no digest", ({ text }) => {
    expect(sourceParsers.parseDigest(text)).toEqual({
      kind: "error",
      message: `digest algorithm "${text.slice(0, 6)}" is not supported, expected sha256: and 64 lower-case hex digits`,
    });
  });

  describe("beside a digest in the reference", () => {
    it("must be equal, without a question", async () => {
      const { world, digest, loader } = await openWarmWorld();
      const at = `${world.ref}@${digest}`;

      const refusal = await refusalOf(
        loader.load({ expectedDigest: NOWHERE }, at),
      );
      const loaded = await loader.load({ expectedDigest: digest }, at);

      expect(refusal.code).toBe("expected-digest-mismatch");
      expect(refusal.message).toBe(
        `cannot resolve module: module OCI ${at}: the reference is pinned to ${digest}, module.oci.expectedDigest is ${NOWHERE}`,
      );
      expect(loaded.content).toBe("one");
      expect(world.requests()).toHaveLength(2);
    });
  });

  describe("while the registry gives no answer", () => {
    it("[R2] the expected module is served, wherever the pointer leads", async () => {
      const world = await openTagWorld();
      const first = world.publish("one").manifestDigest;
      await world.open().load({ expectedDigest: first });
      world.publish("two");
      await world.open().load();
      answerTag(world, () => status(503));
      const loader = world.open();

      expect((await loader.load({ expectedDigest: first })).content).toBe(
        "one",
      );
      expect((await loader.load()).content).toBe("two");
    });

    it("[R2] an expectation moves no pointer", async () => {
      const world = await openTagWorld();
      const { manifestDigest } = world.publish("one");
      const loader = world.open();
      await loader.load({ expectedDigest: manifestDigest });
      answerTag(world, () => status(503));

      expect((await refusalOf(loader.load())).message).toMatch(
        /no earlier resolution of the tag is known$/u,
      );
    });

    it("[R16] what the pointer says is told, and so is the outage", async () => {
      const { world, digest, loader } = await openWarmWorld();
      answerTag(world, () => status(503));
      const outage = `${world.registry.authority}: HTTP 503 Service Unavailable, asks to wait 60 s`;

      const refusal = await refusalOf(loader.load({ expectedDigest: NOWHERE }));

      expect(refusal.code).toBe("registry-unreachable");
      expect(refusal.message).toBe(
        `cannot resolve module: module OCI ${world.ref}: ${outage}; module.oci.expectedDigest ${NOWHERE} is not in the cache for this step, and the tag led to ${digest} when it was last resolved`,
      );
      expect(refusal.cause).toMatchObject({ message: outage });
    });
  });
});

describe("loader: a tag that moves", () => {
  it("[§9 RepublishedTagRefetched] is noticed by the same loader", async () => {
    const world = await openTagWorld();
    const first = world.publish("one").manifestDigest;
    const loader = world.open();
    const before = await loader.load();
    const second = world.publish("two").manifestDigest;
    const after = await loader.load();

    expect([before, after]).toEqual([
      { manifestDigest: first, warning: null, content: "one" },
      { manifestDigest: second, warning: null, content: "two" },
    ]);
    expect(loader.lines).toContainEqual({
      level: "info",
      fields: { ref: world.ref, digest: second, before: first },
      message: "a tag was moved",
    });
    expect(loader.counted.filter((line) => line.startsWith("tag"))).toEqual([
      "tag registry",
      "tag registry",
    ]);
  });

  it("[§9 ServesFromCacheWhenRegistryDown] a new loader goes on with what is in the cache", async () => {
    const { world, digest, loader } = await openWarmWorld();
    await world.registry.stop();

    const loaded = await loader.load();

    expect(loaded).toMatchObject({ manifestDigest: digest, content: "one" });
    expect(loaded.warning).toContain("connection refused");
  });

  it("[§9 EquivalentToLocal] gives the module that a file gives", async () => {
    const { world } = await openWarmWorld();
    writeFileSync(path.join(world.cacheDir, "m.wasm"), "one");
    const { loader } = world.open({ moduleDir: world.cacheDir });
    const { moduleDigest } = world.publish("one");

    const { module } = await loader.resolve(
      { type: "Path", path: "m.wasm", manifestPath: null },
      { credentialOf: () => null, redirectFence: null },
      openScope(),
    );

    expect(module.digest).toBe(moduleDigest);
  });

  it("[R7] in the middle of a load does not mix two modules", async () => {
    const world = await openTagWorld();
    const { manifestDigest } = world.publish("one");
    world.registry.intercept(({ path: asked }) => {
      if (asked.includes("/blobs/")) world.publish("two");
      return "pass";
    });

    expect(await world.open().load()).toEqual({
      manifestDigest,
      warning: null,
      content: "one",
    });
  });

  it("[R20] is not moved back by an answer that was asked for earlier", async () => {
    const world = await openTagWorld();
    const first = world.publish("one").manifestDigest;
    const gate = createGate();
    let isHeld = true;
    // The answer of then, which comes late.
    world.registry.intercept(async ({ path: asked }) => {
      if (!asked.endsWith("/manifests/v1") || !isHeld) return "pass";
      isHeld = false;
      await gate.pass();
      return {
        status: 307,
        headers: { location: `/v2/a/b/manifests/${first}` },
      };
    });
    const slow = world.open();
    const load = slow.load();
    await gate.reached;
    const second = world.publish("two").manifestDigest;
    const other = world.open();
    other.advance(1_000);
    await other.load();
    slow.advance(2_000);
    gate.open();
    expect((await load).manifestDigest).toBe(first);

    answerTag(world, () => status(503));
    const later = world.open();
    later.advance(2_000);
    expect((await later.load()).manifestDigest).toBe(second);
  });
});
