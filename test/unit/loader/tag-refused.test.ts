import { describe, expect, it } from "vitest";
import {
  answerTag,
  NOWHERE,
  openTagWorld,
  openWarmWorld,
  refusalOf,
  status,
} from "./tag-world.js";

const LOGIN = { username: "alice", password: "hunter2" };
const user = LOGIN.username;

describe("loader/oci/tags: a tag that its registry has just refused", () => {
  it.each([401, 403])(
    "[§6.4] with %d: the credential must show anew that it may have the digest the tag led to",
    async (code) => {
      const world = await openTagWorld();
      const { manifestDigest } = world.publish("one");
      world.registry.requireBasic(LOGIN);
      const loader = world.open();
      const at = `${world.registry.authority}/a/b@${manifestDigest}`;
      await loader.load({ user });
      await loader.load({ user }, at);
      const before = world.requests().length;
      answerTag(world, () => status(code));

      await refusalOf(loader.load({ user }));
      const loaded = await loader.load({ user }, at);

      expect(loaded.content).toBe("one");
      expect(world.requests().slice(before)).toContain(
        `GET manifests/${manifestDigest}`,
      );
    },
  );

  it.each([
    { name: "by a credential", login: LOGIN, asking: { user } },
    { name: "by anybody", login: null, asking: {} },
  ])(
    "[R1] is not answered from --tag-resolve-interval when it was asked $name",
    async ({ login, asking }) => {
      const world = await openTagWorld();
      world.publish("one");
      if (login !== null) world.registry.requireBasic(login);
      const loader = world.open({
        tags: { resolveIntervalMs: 60_000, maxStalenessMs: 3_600_000 },
      });
      await loader.load(asking);
      answerTag(world, () => status(404));

      // Another digest is expected than the one that is remembered, so the registry is asked.
      const expecting = { ...asking, expectedDigest: NOWHERE };
      const refusals = [
        await refusalOf(loader.load(expecting)),
        await refusalOf(loader.load(asking)),
      ];

      expect(refusals.map(({ code }) => code)).toEqual([
        "module-not-found",
        "module-not-found",
      ]);
    },
  );
});

describe("loader/oci/tags: an outage, for a step that expects a digest", () => {
  it("[R15] is logged once each time it begins", async () => {
    const { world, digest, loader } = await openWarmWorld();
    let isDown = true;
    answerTag(world, () => (isDown ? status(503) : "pass"));
    const expecting = { expectedDigest: digest };
    const load = async () => {
      loader.advance(5_001);
      await loader.load(expecting);
    };
    const logged = () =>
      loader.lines.filter(({ message }) =>
        message.includes("the expected digest is in the cache"),
      ).length;

    await load();
    await load();
    expect(logged()).toBe(1);
    isDown = false;
    await load();
    isDown = true;
    await load();
    await load();

    expect(logged()).toBe(2);
  });
});
