import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
} from "vitest";
import { type Claim, createAccess } from "../../../src/loader/access.js";
import type { LoaderOptions } from "../../../src/loader/index.js";
import {
  type AccessStore,
  createAccessStore,
} from "../../../src/loader/store/access-store.js";
import type { ModuleSource } from "../../../src/ports.js";
import type { Login } from "../../support/registry-auth.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import {
  createTestLoader,
  openScope,
  pinned,
  tagged,
  type TestLoader,
} from "./loading.js";
import { handClock, recordingLogger } from "./store/fixtures.js";
import { digestOf } from "./store/store-content.js";

const DAY_MS = 86_400_000;
const RECHECK_MS = 600_000;
/** Failures are remembered for 5 s. */
const FORGOTTEN_MS = 5_001;

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "access-"));
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

describe("loader/access", () => {
  const byCredential: Claim = {
    place: "ghcr.io/a/b",
    digest: digestOf("module"),
    identity: "f".repeat(64),
  };
  const byAnybody: Claim = { ...byCredential, identity: "anonymous" };
  let clock: ReturnType<typeof handClock>;

  beforeEach(() => {
    clock = handClock();
  });

  /** As after a restart. */
  function open() {
    const store = createAccessStore(dir, clock, recordingLogger().logger);
    return createAccess(store, RECHECK_MS, clock);
  }

  it("asks the store once a day for what it remembers, which keeps what is asked for", async () => {
    const store = createAccessStore(dir, clock, recordingLogger().logger);
    let questions = 0;
    const asked: AccessStore = {
      ...store,
      provedAt(key) {
        questions += 1;
        return store.provedAt(key);
      },
    };
    const access = createAccess(asked, RECHECK_MS, clock);
    await access.prove(byAnybody, true);

    for (let hour = 0; hour < 72; hour++) {
      clock.advance(DAY_MS / 24);
      expect(await access.standing(byAnybody)).toBe("proved");
    }

    expect(questions).toBe(3);
  });

  it.each([
    { name: "a credential", claim: byCredential },
    { name: "anybody", claim: byAnybody },
  ])("nothing is proved for $name at first", async ({ claim }) => {
    expect(await open().standing(claim)).toBe("unproved");
  });

  it.each([
    { ageMs: 0, want: "proved" },
    { ageMs: RECHECK_MS - 1, want: "proved" },
    { ageMs: RECHECK_MS, want: "stale" },
    { ageMs: 7 * DAY_MS - 1, want: "stale" },
    { ageMs: 7 * DAY_MS, want: "unproved" },
  ])(
    "a proof by credential is $want after $ageMs ms, after a restart as well",
    async ({ ageMs, want }) => {
      const access = open();
      await access.prove(byCredential, false);
      clock.advance(ageMs);

      expect(await access.standing(byCredential)).toBe(want);
      expect(await open().standing(byCredential)).toBe(want);
    },
  );

  it("a later proof counts, after a restart as well", async () => {
    const access = open();
    await access.prove(byCredential, false);
    clock.advance(RECHECK_MS);
    await access.prove(byCredential, false);
    clock.advance(RECHECK_MS - 1);

    expect(await access.standing(byCredential)).toBe("proved");
    expect(await open().standing(byCredential)).toBe("proved");
  });

  it.each([
    { name: "place", other: { place: "ghcr.io/a/c" } },
    { name: "digest", other: { digest: digestOf("another") } },
    { name: "credential", other: { identity: "e".repeat(64) } },
    { name: "caller without credential", other: { identity: "anonymous" } },
  ])("a proof is none for another $name", async ({ other }) => {
    const access = open();
    await access.prove(byCredential, false);

    expect(await access.standing({ ...byCredential, ...other })).toBe(
      "unproved",
    );
  });

  it("what anybody may have is proved for everybody and for good", async () => {
    const access = open();
    await access.prove(byCredential, true);

    clock.advance(80 * DAY_MS);
    const reopened = open();
    for (const claim of [byAnybody, byCredential]) {
      expect(await access.standing(claim)).toBe("proved");
      expect(await reopened.standing(claim)).toBe("proved");
    }
    clock.advance(1_000 * DAY_MS);
    for (const claim of [byAnybody, byCredential])
      expect(await reopened.standing(claim)).toBe("proved");
  });

  it("a stale proof does not stand in the way of one for everybody", async () => {
    const access = open();
    await access.prove(byCredential, false);
    clock.advance(RECHECK_MS);
    await access.prove(byAnybody, true);
    clock.advance(RECHECK_MS);

    expect(await access.standing(byCredential)).toBe("proved");
  });

  it("what was disproved stays so, after a restart as well", async () => {
    const access = open();
    const others = { ...byCredential, identity: "e".repeat(64) };
    await access.prove(byCredential, false);
    await access.prove(others, false);
    await access.disprove(byCredential);

    expect(await access.standing(byCredential)).toBe("unproved");
    expect(await open().standing(byCredential)).toBe("unproved");
    expect(await access.standing(others)).toBe("proved");
  });

  it("what was disproved can be proved again", async () => {
    const access = open();
    await access.prove(byCredential, false);
    await access.disprove(byCredential);
    await access.prove(byCredential, false);

    expect(await access.standing(byCredential)).toBe("proved");
    expect(await open().standing(byCredential)).toBe("proved");
  });

  it.each([{ backMs: 1 }, { backMs: RECHECK_MS }, { backMs: 365 * DAY_MS }])(
    "a clock that is set back by $backMs ms makes no proof fresh",
    async ({ backMs }) => {
      const access = open();
      await access.prove(byCredential, false);
      clock.advance(-backMs);

      expect(await access.standing(byCredential)).toBe("stale");
      // A new proof counts from now on, as short as ever.
      await access.prove(byCredential, false);
      expect(await access.standing(byCredential)).toBe("proved");
      clock.advance(RECHECK_MS);
      expect(await access.standing(byCredential)).toBe("stale");
    },
  );

  it("a proof from a time to come is none after a restart", async () => {
    await open().prove(byCredential, false);
    clock.advance(-DAY_MS);

    expect(await open().standing(byCredential)).toBe("unproved");
  });
});

describe("loader/access: while the store is being read", () => {
  const claim: Claim = {
    place: "ghcr.io/a/b",
    digest: digestOf("module"),
    identity: "f".repeat(64),
  };

  it("what is disproved is not proved again by what was read before", async () => {
    const { access, answer } = slowAccess();
    const asking = access.standing(claim);

    await access.disprove(claim);
    answer();
    await asking;

    expect(await access.standing(claim)).toBe("unproved");
    expect(await access.wasProved(claim)).toBe(false);
  });

  /** On a store with one record, which tells what it has read only when it is told to. */
  function slowAccess() {
    const clock = handClock();
    let isThere = true;
    let answer = (): void => undefined;
    const answered = new Promise<void>((resolve) => (answer = resolve));
    const store: AccessStore = {
      async provedAt() {
        const found = isThere ? clock.nowMs() : null;
        await answered;
        return found;
      },
      record: () => Promise.reject(new Error("nothing is to be recorded")),
      forget() {
        isThere = false;
        return Promise.resolve();
      },
    };
    const access = createAccess(store, RECHECK_MS, clock);
    return { access, answer: () => answer() };
  }
});

describe("loader/access: who was refused", () => {
  const tag = { place: "ghcr.io/a/b:v1", identity: "f".repeat(64) };

  function open() {
    const clock = handClock();
    const store = createAccessStore(dir, clock, recordingLogger().logger);
    return createAccess(store, RECHECK_MS, clock);
  }

  it("is remembered until it is taken back, after restarts as well", async () => {
    const first = open();
    expect(await first.wasRefused(tag)).toBe(false);
    await first.setRefused(tag, true);
    expect(await first.wasRefused(tag)).toBe(true);

    const second = open();
    expect(await second.wasRefused(tag)).toBe(true);
    await second.setRefused(tag, false);
    expect(await second.wasRefused(tag)).toBe(false);

    const third = open();
    expect(await third.wasRefused(tag)).toBe(false);
    await third.setRefused(tag, true);
    expect(await open().wasRefused(tag)).toBe(true);
  });

  it.each([
    { name: "at another place", other: { place: "ghcr.io/a/b:v2" } },
    { name: "with another credential", other: { identity: "e".repeat(64) } },
    { name: "without credential", other: { identity: "anonymous" } },
  ])("says nothing of who asks $name", async ({ other }) => {
    const access = open();
    await access.setRefused(tag, true);

    expect(await access.wasRefused({ ...tag, ...other })).toBe(false);
  });

  it("is no proof of anything", async () => {
    const access = open();
    await access.setRefused(tag, true);

    const claim = { ...tag, digest: digestOf("module") };
    expect(await access.standing(claim)).toBe("unproved");
    expect(await access.wasProved(claim)).toBe(false);
  });
});

describe("loader/access, through the loader", () => {
  const WASM = Buffer.from("\0asm\x01\0\0\0 a private module");
  const MANIFEST = '{"private":"manifest"}';
  const OWNER: Login = { username: "owner", password: "hunter2-right" };
  const WRONG: Login = { username: "owner", password: "hunter2-wrong" };

  let registry: ScriptedRegistry;

  beforeEach(async () => {
    registry = await startScriptedRegistry();
  });

  afterEach(async () => {
    await registry.stop();
  });

  describe.each([
    {
      name: "wants the login itself",
      guard: () => {
        registry.requireBasic(OWNER);
      },
    },
    {
      name: "wants a token",
      guard: () => {
        registry.requireBearer(OWNER);
      },
    },
  ])("a private module of a registry that $name", ({ guard }) => {
    it.each([
      { name: "without credential", stranger: null },
      { name: "with a wrong one", stranger: WRONG },
    ])(
      "is not given to a step $name, whether or not the registry answers",
      async ({ stranger }) => {
        guard();
        const source = publish("a/b");
        const test = open();
        expect(await load(test, source, OWNER)).toEqual(WASM);

        await expect(load(test, source, stranger)).rejects.toMatchObject({
          name: "LoaderError",
          code: "registry-auth-failed",
        });
        silence();
        test.advance(FORGOTTEN_MS);
        await expect(load(test, source, stranger)).rejects.toMatchObject({
          code: "access-unproven",
        });

        expect(await load(test, source, OWNER)).toEqual(WASM);
      },
    );

    it("is not given to a step that asks at the same time", async () => {
      guard();
      const source = publish("a/b");
      const test = open();

      const outcomes = await Promise.allSettled([
        load(test, source, OWNER),
        load(test, source, null),
        load(test, source, WRONG),
      ]);

      expect(outcomes.map(({ status }) => status)).toEqual([
        "fulfilled",
        "rejected",
        "rejected",
      ]);
    });

    it("is asked for with a HEAD of the manifest when the proof is old", async () => {
      guard();
      const source = publish("a/b");
      const test = open();
      await load(test, source, OWNER);
      const before = asked().length;

      test.advance(RECHECK_MS - 60_000);
      await load(test, source, OWNER);
      expect(asked()).toHaveLength(before);
      test.advance(60_000);
      await load(test, source, OWNER);
      const since = asked().slice(before);
      await load(test, source, OWNER);

      // A token may have to be asked for first, with a challenge before it.
      const head = `HEAD /v2/a/b/manifests/${digestIn(source)}`;
      expect(new Set(since.filter((each) => each !== "GET /token"))).toEqual(
        new Set([head]),
      );
      expect(asked().slice(before)).toEqual(since);
      expect(registry.requests.at(-1)?.hasAuthorization).toBe(true);
    });
  });

  it.each([
    {
      name: "the credential is revoked",
      status: 401,
      code: "registry-auth-failed",
    },
    {
      name: "the credential may no more",
      status: 403,
      code: "registry-auth-failed",
    },
    { name: "it is gone", status: 404, code: "module-not-found" },
    { name: "it is gone for good", status: 410, code: "registry-refused" },
    { name: "it is a bad request", status: 400, code: "registry-refused" },
  ])(
    "once $name it is refused, also when the registry is gone or the runtime restarts",
    async ({ status, code }) => {
      registry.requireBasic(OWNER);
      const source = publish("a/b");
      const test = open();
      await load(test, source, OWNER);

      registry.intercept(() => ({ status }));
      test.advance(RECHECK_MS);
      await expect(load(test, source, OWNER)).rejects.toMatchObject({ code });
      silence();
      test.advance(FORGOTTEN_MS);

      await expect(load(test, source, OWNER)).rejects.toMatchObject({
        code: "access-unproven",
      });
      await test.loader.close();
      await expect(load(open(), source, OWNER)).rejects.toMatchObject({
        code: "access-unproven",
      });
    },
  );

  it("a credential that a tag's registry has refused does not count when nobody answers", async () => {
    registry.requireBasic(OWNER);
    publish("a/b", "v1");
    const source = tagged(`${registry.authority}/a/b:v1`, {
      credentials: "pull",
    });
    const test = open({
      tags: { resolveIntervalMs: 0, maxStalenessMs: DAY_MS },
    });
    await load(test, source, OWNER);
    test.advance(RECHECK_MS);

    registry.intercept(() => ({ status: 403 }));
    await expect(load(test, source, OWNER)).rejects.toMatchObject({
      code: "registry-auth-failed",
    });
    silence();
    test.advance(FORGOTTEN_MS);

    await expect(load(test, source, OWNER)).rejects.toMatchObject({
      name: "LoaderError",
    });
  });

  it("a registry that does not answer leaves an earlier proof as it is, with a warning", async () => {
    registry.requireBasic(OWNER);
    const source = publish("a/b");
    const test = open();
    await load(test, source, OWNER);
    await registry.stop();

    test.advance(RECHECK_MS - 60_000);
    await load(test, source, OWNER);
    expect(warnings(test)).toEqual([]);
    test.advance(60_000);

    expect(await load(test, source, OWNER)).toEqual(WASM);
    expect(warnings(test)).toMatchObject([
      {
        fields: {
          digest: source.ref.digest,
          reason: `${registry.authority}: connection refused (ECONNREFUSED)`,
        },
        message: "cannot check access again, an earlier proof is used",
      },
    ]);
  });

  it("a proof that is seven days old is none, whether or not the registry answers", async () => {
    registry.requireBasic(OWNER);
    const source = publish("a/b");
    const test = open();
    await load(test, source, OWNER);
    silence();

    test.advance(7 * DAY_MS - 60_000);
    expect(await load(test, source, OWNER)).toEqual(WASM);
    test.advance(60_000);

    await expect(load(test, source, OWNER)).rejects.toMatchObject({
      code: "access-unproven",
      message: `cannot resolve module: module OCI ${source.ref.text}: it is in the cache, but nothing shows that this step may pull it: ${registry.authority}: HTTP 503 Service Unavailable, asks to wait 61 s`,
    });
  });

  it("the seven days begin anew with each answer of the registry", async () => {
    registry.requireBasic(OWNER);
    const source = publish("a/b");
    const test = open();
    await load(test, source, OWNER);

    test.advance(6 * DAY_MS);
    await load(test, source, OWNER);
    silence();
    test.advance(2 * DAY_MS);

    expect(await load(test, source, OWNER)).toEqual(WASM);
  });

  it("proofs outlive a restart, as old as they are", async () => {
    registry.requireBasic(OWNER);
    const source = publish("a/b");
    const first = open();
    await load(first, source, OWNER);
    await first.loader.close();
    const before = asked().length;

    const second = open();
    await load(second, source, OWNER);
    expect(asked()).toHaveLength(before);
    await expect(load(second, source, null)).rejects.toMatchObject({
      code: "registry-auth-failed",
    });
    silence();
    second.advance(RECHECK_MS);

    expect(await load(second, source, OWNER)).toEqual(WASM);
    expect(warnings(second)).toHaveLength(1);
    second.advance(7 * DAY_MS);
    await expect(load(second, source, OWNER)).rejects.toMatchObject({
      code: "access-unproven",
    });
  });

  it("a recheck interval of 0 asks with every request", async () => {
    registry.requireBasic(OWNER);
    const source = publish("a/b");
    const test = open({ accessRecheckIntervalMs: 0 });
    await load(test, source, OWNER);
    const before = asked().length;

    await load(test, source, OWNER);
    await load(test, source, OWNER);

    const head = `HEAD /v2/a/b/manifests/${digestIn(source)}`;
    expect(asked().slice(before)).toEqual([head, head]);
  });

  it.each([
    { name: "of a registry that asks for nothing", guard: () => undefined },
    {
      name: "of a registry that gives everybody a token",
      guard: () => void registry.requireBearer(null),
    },
  ])("public content $name needs no proof ever again", async ({ guard }) => {
    guard();
    const source = publish("a/b");
    const test = open();
    await load(test, source, null);
    await test.loader.close();
    const before = asked().length;

    const later = open();
    later.advance(80 * DAY_MS);
    await load(later, source, null);
    await load(later, source, OWNER);
    await load(later, source, WRONG);

    expect(asked()).toHaveLength(before);
  });

  it("content is public, too, when one with a credential was not asked for it", async () => {
    const source = publish("a/b");
    const test = open();
    await load(test, source, OWNER);
    const before = asked().length;

    test.advance(RECHECK_MS);
    await load(test, source, null);

    expect(asked()).toHaveLength(before);
  });

  describe("a repository of somebody else's", () => {
    it("does not have what it does not have: its name and that digest find nothing", async () => {
      guardRepository("a/private");
      const source = publish("a/private");
      const test = open();
      await load(test, source, OWNER);

      await expect(
        load(
          test,
          pinned(`${registry.authority}/evil/x`, digestIn(source)),
          null,
        ),
      ).rejects.toMatchObject({ code: "module-not-found" });
    });

    it("does not have the module that its manifest names", async () => {
      guardRepository("a/private");
      const source = publish("a/private");
      const test = open();
      await load(test, source, OWNER);
      const layer = digestOf(WASM);
      missing(`/v2/evil/x/blobs/${layer}`);
      const before = asked().length;

      const { manifestDigest: forged } = registry.addModule("evil/x", {
        wasm: WASM,
      });
      await expect(
        load(test, pinned(`${registry.authority}/evil/x`, forged), null),
      ).rejects.toMatchObject({ code: "module-not-found" });

      expect(asked().slice(before)).toEqual([
        `GET /v2/evil/x/manifests/${forged}`,
        `HEAD /v2/evil/x/blobs/${layer}`,
      ]);
    });

    it("does not have the module manifest that its manifest names", async () => {
      guardRepository("a/private");
      const source = publish("a/private");
      const test = open();
      await readManifest(test, source, OWNER);
      const layer = digestOf(MANIFEST);
      missing(`/v2/evil/x/blobs/${layer}`);

      const mine = Buffer.from("\0asm\x01\0\0\0 mine");
      const { manifestDigest } = registry.addModule("evil/x", {
        wasm: mine,
        manifest: MANIFEST,
      });
      const forged = pinned(`${registry.authority}/evil/x`, manifestDigest);

      expect(await load(test, forged, null)).toEqual(mine);
      await expect(readManifest(test, forged, null)).rejects.toMatchObject({
        code: "module-not-found",
      });
    });

    it.each([
      { name: "the private image", isForged: false },
      { name: "an image of its own with the private module", isForged: true },
    ])(
      "on a registry that says it has everything does not have $name",
      async ({ isForged }) => {
        registry.requireBasic(OWNER);
        const source = publish("a/private");
        const test = open();
        await load(test, source, OWNER);
        const evil = await startScriptedRegistry();
        onTestFinished(() => evil.stop());
        // It knows digests, which are no secret, and no private bytes.
        const { manifestDigest: own } = evil.addModule("evil/x", {
          wasm: WASM,
        });
        evil.intercept(({ method, path: to }) => {
          if (method === "HEAD") return { status: 200 };
          return to.includes("/blobs/") ? { status: 404 } : "pass";
        });

        await expect(
          load(
            test,
            pinned(
              `${evil.authority}/evil/x`,
              isForged ? own : digestIn(source),
            ),
            null,
          ),
        ).rejects.toMatchObject({ name: "LoaderError" });
      },
    );
  });

  describe("the runtime's Docker config", () => {
    it("is who asks for a step without a credential, and nobody else", async () => {
      registry.requireBasic(OWNER);
      const source = publish("a/b");
      const dockerConfigFile = writeDockerConfig(OWNER);
      const first = open({ dockerConfigFile });

      expect(await load(first, source, null)).toEqual(WASM);
      await expect(load(first, source, WRONG)).rejects.toMatchObject({
        code: "registry-auth-failed",
      });
      await first.loader.close();

      await expect(load(open(), source, null)).rejects.toMatchObject({
        code: "registry-auth-failed",
      });
      silence();
      expect(await load(open({ dockerConfigFile }), source, null)).toEqual(
        WASM,
      );
    });

    it("does not give a step's own module to steps without a credential", async () => {
      registry.requireBasic(OWNER);
      const source = publish("a/b");
      const test = open({ dockerConfigFile: writeDockerConfig(WRONG) });
      await load(test, source, OWNER);

      await expect(load(test, source, null)).rejects.toMatchObject({
        code: "registry-auth-failed",
      });
    });

    function writeDockerConfig({ username, password }: Login): string {
      const file = path.join(dir, "docker-config.json");
      const auth = Buffer.from(`${username}:${password}`).toString("base64");
      const auths = { [registry.authority]: { auth } };
      writeFileSync(file, JSON.stringify({ auths }));
      return file;
    }
  });

  type PinnedSource = ReturnType<typeof pinned>;

  /** A module with a manifest, which needs no credential unless the test wants one. */
  function publish(repository: string, tag?: string): PinnedSource {
    const { manifestDigest } = registry.addModule(repository, {
      wasm: WASM,
      manifest: MANIFEST,
      ...(tag === undefined ? {} : { tag }),
    });
    return pinned(`${registry.authority}/${repository}`, manifestDigest);
  }

  function digestIn({ ref: { digest } }: PinnedSource) {
    if (digest === null) throw new Error("the reference is not pinned");
    return digest;
  }

  function open(options: Partial<LoaderOptions> = {}): TestLoader {
    const test = createTestLoader({
      cacheDir: path.join(dir, "cache"),
      accessRecheckIntervalMs: RECHECK_MS,
      ...options,
    });
    onTestFinished(() => test.loader.close());
    return test;
  }

  /** @param login of the step; null = the step names no credential */
  async function resolve(
    { loader }: TestLoader,
    source: PinnedSource,
    login: Login | null,
  ) {
    const asking: ModuleSource = {
      ...source,
      credentials: login === null ? null : "pull",
    };
    const data = new Map(
      Object.entries(login ?? {}).map(([key, value]) => [
        key,
        Buffer.from(String(value)),
      ]),
    );
    const context = {
      credentialOf: (name: string) => (name === "pull" ? data : null),
      redirectFence: null,
    };
    return await loader.resolve(asking, context, openScope());
  }

  /** The bytes of the module. */
  async function load(
    test: TestLoader,
    source: PinnedSource,
    login: Login | null,
  ): Promise<Buffer> {
    const { module } = await resolve(test, source, login);
    const { filePath } = await module.locate();
    return await readFile(filePath);
  }

  async function readManifest(
    test: TestLoader,
    source: PinnedSource,
    login: Login | null,
  ) {
    const found = await resolve(test, source, login);
    return await found.readManifest(openScope());
  }

  /** From now on nobody answers; it asks for so long a pause that nothing is tried again. */
  function silence(): void {
    registry.intercept(() => ({
      status: 503,
      headers: { "retry-after": "61" },
    }));
  }

  /** Only the owner may have what is in the repository. */
  function guardRepository(repository: string): void {
    const { username, password } = OWNER;
    const basic = Buffer.from(`${username}:${password}`).toString("base64");
    registry.intercept(({ path: to, headers }) =>
      to.startsWith(`/v2/${repository}/`) &&
      headers.authorization !== `Basic ${basic}`
        ? { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } }
        : "pass",
    );
  }

  /** Every repository of the scripted registry has every blob; this one has not. */
  function missing(blob: string): void {
    registry.intercept(({ path: to }) =>
      to === blob ? { status: 404 } : "pass",
    );
  }

  function asked(): string[] {
    return registry.requests.map(({ method, path: to }) => `${method} ${to}`);
  }

  function warnings({ lines }: TestLoader) {
    return lines.filter(({ level }) => level === "warn");
  }
});
