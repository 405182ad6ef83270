import { describe, expect, it } from "vitest";
import { createRequestScope } from "../../../src/request-scope.js";
import {
  answerTag,
  createGate,
  NOWHERE,
  openTagWorld,
  openWarmWorld,
  refusalOf,
  status,
} from "./tag-world.js";

describe("loader: questions about tags", () => {
  it("are shared by those who ask at once", async () => {
    const world = await openTagWorld();
    const { layerDigest } = world.publish("one");
    const loader = world.open();

    const loads = await Promise.all(
      Array.from({ length: 5 }, () => loader.load()),
    );

    expect(loads.map(({ content }) => content)).toEqual(Array(5).fill("one"));
    expect(world.requests()).toEqual([
      "GET manifests/v1",
      `GET blobs/${layerDigest}`,
    ]);
  });

  it("are not shared with somebody else's credential", async () => {
    const world = await openTagWorld();
    world.publish("one");
    const login = { username: "alice", password: "hunter2" };
    world.registry.requireBasic(login);
    const loader = world.open();

    const [alice, ...others] = await Promise.allSettled([
      loader.load({ user: "alice" }),
      loader.load({ user: "mallory" }),
      loader.load(),
    ]);

    expect(alice).toMatchObject({ value: { content: "one" } });
    for (const other of others)
      expect(other).toMatchObject({ reason: { code: "registry-auth-failed" } });
  });

  it("--tag-resolve-interval: an answer is used again for that long", async () => {
    const world = await openTagWorld();
    const first = world.publish("one").manifestDigest;
    const loader = world.open({
      tags: { resolveIntervalMs: 60_000, maxStalenessMs: 0 },
    });
    const contents = [(await loader.load()).content];
    const second = world.publish("two").manifestDigest;

    loader.advance(50_000);
    contents.push((await loader.load()).content);
    contents.push((await loader.load({ expectedDigest: first })).content);
    loader.advance(10_001);
    contents.push((await loader.load()).content);
    contents.push((await loader.load({ expectedDigest: second })).content);

    expect(contents).toEqual(["one", "one", "one", "two", "two"]);
    expect(
      world.requests().filter((line) => line === "GET manifests/v1"),
    ).toHaveLength(2);
    expect(loader.counted.filter((line) => line.startsWith("tag"))).toEqual([
      "tag registry",
      ...["tag cache", "tag cache"],
      "tag registry",
      "tag cache",
    ]);
  });

  it("--tag-resolve-interval: no answer is used again for longer than access counts as proved", async () => {
    const world = await openTagWorld();
    world.publish("one");
    world.registry.requireBasic({ username: "alice", password: "hunter2" });
    const loader = world.open({
      tags: { resolveIntervalMs: 86_400_000, maxStalenessMs: 0 },
      accessRecheckIntervalMs: 600_000,
    });
    await loader.load({ user: "alice" });
    world.registry.requireBasic({ username: "bob", password: "hunter2" });

    loader.advance(500_000);
    expect((await loader.load({ user: "alice" })).content).toBe("one");
    loader.advance(100_001);

    expect((await refusalOf(loader.load({ user: "alice" }))).code).toBe(
      "registry-auth-failed",
    );
  });

  it("--tag-resolve-interval: nobody else's answer is used", async () => {
    const world = await openTagWorld();
    world.publish("one");
    world.registry.requireBasic({ username: "alice", password: "hunter2" });
    const loader = world.open({
      tags: { resolveIntervalMs: 60_000, maxStalenessMs: 3_600_000 },
    });
    const { manifestDigest } = await loader.load({ user: "alice" });

    const refusals = [
      await refusalOf(loader.load()),
      await refusalOf(loader.load({ user: "mallory" })),
    ];

    expect(refusals.map(({ code }) => code)).toEqual([
      "registry-auth-failed",
      "registry-auth-failed",
    ]);
    // Nor is the pointer, which tells where tags lead and not who may have it.
    world.registry.intercept(() => status(503));
    const offline = await refusalOf(loader.load({ user: "mallory" }));
    expect(offline.message).toMatch(/; when it last answered, it refused$/u);
    const expectedDigest = manifestDigest ?? NOWHERE;
    expect(
      (await refusalOf(loader.load({ user: "mallory", expectedDigest })))
        .message,
    ).toMatch(/; when it last answered, it refused$/u);
    expect((await loader.load({ user: "alice" })).content).toBe("one");
    expect((await loader.load({ user: "alice", expectedDigest })).content).toBe(
      "one",
    );
  });

  it("[R13] are not put to a registry again that was silent in the last 5 s", async () => {
    const world = await openTagWorld();
    world.publish("one");
    const loader = world.open();
    let isDown = true;
    world.registry.intercept(() => {
      if (!isDown) return "pass";
      // There is no time left to try again.
      loader.advance(4_900);
      return "drop";
    });

    await refusalOf(loader.load());
    loader.advance(3_600);
    const refusal = await refusalOf(loader.load({ expectedDigest: NOWHERE }));
    expect(refusal.code).toBe("registry-unreachable");
    expect(refusal.message).toContain("the connection was closed");
    expect(world.requests()).toEqual(["GET manifests/v1"]);

    isDown = false;
    loader.advance(1_401);
    expect((await loader.load()).content).toBe("one");
  });

  it("[R13] are put to others while one gives no answer but a status, and to that in 5 s", async () => {
    const { world, loader } = await openWarmWorld();
    const other = await openWarmWorld();
    let isDown = true;
    answerTag(world, () => (isDown ? status(503) : "pass"));

    expect((await loader.load()).warning).toContain("HTTP 503");
    expect((await loader.load({}, other.world.ref)).content).toBe("one");
    isDown = false;
    expect((await loader.load()).warning).toBeNull();
    loader.advance(5_001);
    expect((await loader.load()).warning).toBeNull();
    expect(loader.counted.filter((line) => line.startsWith("tag"))).toEqual([
      "tag pointer",
      "tag registry",
      "tag pointer",
      "tag registry",
    ]);
  });

  it("[R14] are asked with one token", async () => {
    const world = await openTagWorld();
    world.publish("one");
    world.registry.requireBearer(null);
    const loader = world.open();

    await loader.load();
    await loader.load();

    const asked = world.registry.requests.map((request) => request.path);
    expect(asked.filter((line) => line === "/token")).toHaveLength(1);
  });

  it("[R13] whose request ends first leave the fetch of the module to the next one", async () => {
    const world = await openTagWorld();
    world.publish("one");
    const gate = createGate();
    world.registry.intercept(async ({ path: asked }) => {
      if (asked.includes("/blobs/")) await gate.pass();
      return "pass" as const;
    });
    const loader = world.open();
    const leaving = createRequestScope({ deadlineAtMs: Infinity });

    const left = refusalOf(loader.load({ scope: leaving }));
    await gate.reached;
    leaving.cancel();
    expect((await left).code).toBe("resolve-cancelled");
    const next = loader.load();
    gate.open();

    expect((await next).content).toBe("one");
    expect(
      world.requests().filter((line) => line.includes(" blobs/")),
    ).toHaveLength(1);
  });
});
