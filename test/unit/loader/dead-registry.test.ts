import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Digest } from "../../../src/ports.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { atUrl, pinned, type TestLoader } from "./loading.js";
import {
  asked,
  createRig,
  failureOf,
  pull,
  regcred,
  type Rig,
  WASM,
} from "./pulling.js";
import { digestOf } from "./store/store-content.js";

const LOGIN = { username: "u", password: "hunter2" };
const MANIFEST = '{"abi":1}';
const RECHECK_MS = 600_000;
const MINUTE_MS = 60_000;

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

/** Sends whoever asks for `end` on, so late, to where an answer begins and does not end. */
function stall(loading: TestLoader, end: string, afterMs: number): void {
  registry.intercept(({ method, path }) => {
    if (path === "/slow") return { status: 200, body: "{", ending: "hang" };
    if (method !== "GET" || !path.endsWith(end)) return "pass";
    loading.advance(afterMs);
    return { status: 307, headers: { location: "/slow" } };
  });
}

describe("loader: a server that stalls", () => {
  it.each<{ name: string; publish: () => { source: Source; end: string } }>([
    {
      name: "an image's layer",
      publish() {
        const { manifestDigest } = registry.addModule("a/b", {
          wasm: WASM,
          manifest: MANIFEST,
        });
        const source = pinned(`${registry.authority}/a/b`, manifestDigest);
        return { source, end: `/blobs/${digestOf(MANIFEST)}` };
      },
    },
    {
      name: "a URL",
      publish() {
        registry.intercept(({ path }) =>
          path === "/m.wasm" ? { status: 200, body: WASM } : "pass",
        );
        const source = atUrl(`${registry.url}/m.wasm`, digestOf(WASM), {
          href: `${registry.url}/m.json`,
          digest: digestOf(MANIFEST),
        });
        return { source, end: "/m.json" };
      },
    },
  ])(
    "[R13] has 10 s in all to deliver a module's manifest from $name",
    async ({ publish }) => {
      const { source, end } = publish();
      const loading = rig.loader();
      stall(loading, end, 9_500);

      const error = await failureOf(pull(loading, source));

      expect(error.code).toBe("registry-unreachable");
      expect(error.message).toMatch(/the answer did not end within 0\.\d s$/u);
    },
  );

  it("[R13] has 5 s in all to deliver a pinned image's manifest", async () => {
    const { manifestDigest } = registry.addModule("a/b", { wasm: WASM });
    const loading = rig.loader();
    stall(loading, `/manifests/${manifestDigest}`, 4_500);

    const error = await failureOf(
      pull(loading, pinned(`${registry.authority}/a/b`, manifestDigest)),
    );

    expect(error.code).toBe("registry-unreachable");
    expect(error.message).toMatch(/the answer did not end within 0\.\d s$/u);
  });
});

describe("loader: a registry that gives no answer", () => {
  const credentialOf = () => regcred({ [registry.authority]: LOGIN });

  function publish(): { source: Source; digest: Digest } {
    registry.requireBasic(LOGIN);
    const { manifestDigest: digest } = registry.addModule("a/b", {
      wasm: WASM,
    });
    const source = {
      ...pinned(`${registry.authority}/a/b`, digest),
      credentials: "regcred",
    };
    return { source, digest };
  }

  it("[R13] is asked once a minute whether a credential still may have what is here", async () => {
    const { source } = publish();
    const loading = rig.loader();
    await pull(loading, source, credentialOf());
    loading.advance(RECHECK_MS);
    registry.intercept(() => ({
      status: 503,
      headers: { "retry-after": 60 },
    }));
    const checks = () =>
      asked(registry).filter((each) => each === "HEAD manifests").length;
    const warnings = () =>
      loading.lines.filter(({ level }) => level === "warn").length;

    for (const afterMs of [0, 30_000, 29_000]) {
      loading.advance(afterMs);
      expect((await pull(loading, source, credentialOf())).bytes).toEqual(WASM);
    }
    expect([checks(), warnings()]).toEqual([1, 1]);
    loading.advance(MINUTE_MS);
    await pull(loading, source, credentialOf());

    expect([checks(), warnings()]).toEqual([2, 2]);
  });

  it("[R13] is left alone for 5 s by who asks for a pinned image", async () => {
    const { source } = publish();
    const loading = rig.loader();
    let isDown = true;
    registry.intercept(() =>
      isDown ? { status: 503, headers: { "retry-after": 60 } } : "pass",
    );
    const ask = () => failureOf(pull(loading, source, credentialOf()));

    const errors = [await ask(), await ask()];
    expect(errors.map(({ code }) => code)).toEqual([
      "registry-unreachable",
      "registry-unreachable",
    ]);
    expect(asked(registry)).toEqual(["GET manifests"]);
    isDown = false;
    loading.advance(5_001);

    expect((await pull(loading, source, credentialOf())).bytes).toEqual(WASM);
  });

  it("[R13] is left alone for 5 s by everybody, whatever they ask it for", async () => {
    const sources = ["a/b", "c/d"].map((repository) => {
      const { manifestDigest } = registry.addModule(repository, { wasm: WASM });
      return pinned(`${registry.authority}/${repository}`, manifestDigest);
    });
    const [first, second] = sources as [Source, Source];
    const loading = rig.loader();
    let isDown = true;
    registry.intercept(() => (isDown ? "drop" : "pass"));

    await failureOf(pull(loading, first));
    const before = registry.requests.length;
    const error = await failureOf(pull(loading, second));

    expect(before).toBeGreaterThan(0);
    expect(error.code).toBe("registry-unreachable");
    expect(error.message).toMatch(/ s ago, asked again after 5 s\)$/u);
    expect(registry.requests).toHaveLength(before);
    isDown = false;
    loading.advance(5_001);
    expect((await pull(loading, second)).bytes).toEqual(WASM);
  });

  it("[R13] is given up after 5 s when it does not begin to deliver a module, though it has ten minutes", async () => {
    const { manifestDigest } = registry.addModule("a/b", { wasm: WASM });
    registry.intercept(({ path }) =>
      path.includes("/blobs/") ? "hang" : "pass",
    );
    const source = pinned(`${registry.authority}/a/b`, manifestDigest);

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("registry-unreachable");
    expect(error.message).toMatch(/: no answer within 5 s$/u);
  }, 20_000);
});

describe("loader: a layer without bytes", () => {
  it("is refused by its descriptor, and not asked for", async () => {
    const { manifestDigest } = registry.addModule("a/b", {
      wasm: Buffer.alloc(0),
    });
    const source = pinned(`${registry.authority}/a/b`, manifestDigest);

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("module-empty");
    expect(error.message).toMatch(/: its layer has no bytes$/u);
    expect(asked(registry)).toEqual(["GET manifests"]);
  });
});

type Source = Parameters<typeof pull>[1];
