import { rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import type { Digest } from "../../../src/ports.js";
import { openTagWorld, refusalOf, status, type TagWorld } from "./tag-world.js";

describe("loader: what lies in the cache", () => {
  it("[R4] a module that was changed is fetched anew, and not served offline", async () => {
    const world = await openTagWorld();
    const { layerDigest, manifestDigest } = world.publish("one");
    await world.open().load();
    const file = fileOf(world, "blobs", layerDigest);

    writeFileSync(file, "two");
    expect((await world.open().load()).content).toBe("one");
    expect(world.requests().slice(2)).toEqual([
      "GET manifests/v1",
      `GET blobs/${layerDigest}`,
    ]);
    writeFileSync(file, "two");
    await world.registry.stop();
    const refusal = await refusalOf(world.open().load());
    expect(refusal.code).toBe("registry-unreachable");
    expect(refusal.message).toContain(`${world.ref}@${manifestDigest}`);
    expect(world.cached()).not.toHaveProperty([
      path.relative(world.cacheDir, file),
    ]);
  });

  it("[R4] a manifest that was exchanged is fetched anew, and not served offline", async () => {
    const world = await openTagWorld();
    const { manifestDigest: other } = world.publish("evil");
    await world.open().load();
    const { manifestDigest } = world.publish("one");
    await world.open().load();
    const file = fileOf(world, "manifests", manifestDigest);
    const name = path.relative(world.cacheDir, file);
    const right = world.cached()[name];
    const evil =
      world.cached()[
        path.relative(world.cacheDir, fileOf(world, "manifests", other))
      ];
    const exchange = () => writeFileSync(file, evil ?? "");
    const pinned = `${world.registry.authority}/a/b@${manifestDigest}`;

    exchange();
    expect((await world.open().load()).content).toBe("one");
    expect(world.cached()[name]).toBe(right);
    exchange();
    expect((await world.open().load({}, pinned)).content).toBe("one");
    expect(world.cached()[name]).toBe(right);
    expect(world.requests().at(-1)).toBe(`GET manifests/${manifestDigest}`);

    world.registry.intercept(() => status(503));
    for (const load of [
      () => world.open().load(),
      () => world.open().load({ expectedDigest: manifestDigest }),
      () => world.open().load({}, pinned),
    ]) {
      exchange();
      expect((await refusalOf(load())).code).toBe("registry-unreachable");
    }
  });

  it.each([
    {
      name: "other bytes, which its header calls right",
      body: "two",
      want: "digest-mismatch",
    },
    { name: "fewer bytes", body: "on", want: "digest-mismatch" },
    {
      name: "more bytes than the manifest says",
      body: "one and more",
      want: "answer-too-large",
    },
  ])("[R5] is not a layer of $name", async ({ body, want }) => {
    const world = await openTagWorld();
    const { layerDigest } = world.publish("one");
    world.registry.intercept(({ method, path: asked }) =>
      method === "GET" && asked.includes("/blobs/")
        ? {
            status: 200,
            headers: { "docker-content-digest": layerDigest },
            body,
          }
        : "pass",
    );

    const refusal = await refusalOf(world.open().load());

    expect(refusal.code).toBe(want);
    expect(Object.keys(world.cached()).join()).not.toContain("blobs/");
  });

  it("[R12] a pointer that cannot be written fails nothing", async () => {
    const world = await openTagWorld();
    world.publish("one");
    const loader = world.open();
    const refs = path.join(world.cacheDir, "refs");
    rmSync(refs, { recursive: true });
    writeFileSync(refs, "");

    const loaded = [await loader.load(), await loader.load()];

    expect(loaded.map(({ content }) => content)).toEqual(["one", "one"]);
    expect(loader.lines.filter(({ level }) => level === "warn")).toEqual([
      {
        level: "warn",
        fields: { directory: refs, reason: "ENOTDIR" },
        message:
          "cannot write down what a tag led to, for when its registry cannot be reached",
      },
    ]);
  });
});

/** Where the content of a digest lies. */
function fileOf(world: TagWorld, kind: "blobs" | "manifests", digest: Digest) {
  return path.join(world.cacheDir, kind, digest.replace(":", "-"));
}
