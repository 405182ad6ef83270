import type * as fsPromises from "node:fs/promises";
import { constants } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { pinned, tagged } from "./loading.js";
import { addImageOf, packed } from "./one-layer.js";
import {
  asked,
  createRig,
  failureOf,
  pull,
  regcred,
  type Rig,
  WASM,
} from "./pulling.js";

/** The directories of the files that were made, in order. */
const made = vi.hoisted((): string[] => []);

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof fsPromises>();
  const open: typeof real.open = async (filePath, flags, mode) => {
    if (typeof flags === "number" && (flags & constants.O_CREAT) !== 0)
      made.push(path.basename(path.dirname(String(filePath))));
    return await real.open(filePath, flags, mode);
  };
  return { ...real, open };
});

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
  made.length = 0;
});

afterEach(() => rig.close());

const named = (username: string, password = "hunter2") =>
  regcred({ [registry.authority]: { username, password } });

/** Challenges who shows no login; whether a login is any good is up to `isGood`. */
function wantLogin(isGood: (authorization: string) => boolean): void {
  registry.intercept(({ headers }) =>
    isGood(String(headers.authorization))
      ? "pass"
      : { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } },
  );
}

describe("loader: what many ask for at once", () => {
  it("[C38] is unpacked once, too", async () => {
    const digest = addImageOf(packed(WASM), registry);
    const source = pinned(`${registry.authority}/a/b`, digest);
    const loading = rig.loader();

    const pulled = await Promise.all(
      Array.from({ length: 100 }, () => pull(loading, source)),
    );

    for (const { bytes } of pulled) expect(bytes).toEqual(WASM);
    expect(asked(registry)).toEqual(["GET manifests", "GET blobs"]);
    // The layer and the module in it.
    expect(made.filter((directory) => directory === "blobs")).toHaveLength(2);
  });

  it("[C38] is asked about once for each credential", async () => {
    const { manifestDigest } = registry.addModule("a/b", { wasm: WASM });
    const source = {
      ...pinned(`${registry.authority}/a/b`, manifestDigest),
      credentials: "regcred",
    };
    wantLogin((authorization) => authorization.startsWith("Basic "));
    const loading = rig.loader();
    await pull(loading, source, named("alice"));
    const before = registry.requests.length;

    const pulled = await Promise.all(
      Array.from({ length: 20 }, () => pull(loading, source, named("bob"))),
    );

    for (const { bytes } of pulled) expect(bytes).toEqual(WASM);
    // As anybody, and with the login. Bytes that this registry has delivered need not come again
    // for its word to count.
    expect(asked(registry).slice(before)).toEqual([
      "GET manifests",
      "GET manifests",
      "HEAD blobs",
    ]);
  });

  it("[§6.3] of a tag nobody is told what another credential was told", async () => {
    registry.addModule("a/b", { wasm: WASM, tag: "v1" });
    const source = tagged(`${registry.authority}/a/b:v1`, {
      credentials: "regcred",
    });
    const good = `Basic ${btoa("alice:hunter2")}`;
    wantLogin((authorization) => authorization === good);
    const loading = rig.loader();

    const [alice, mallory] = await Promise.all([
      pull(loading, source, named("alice")),
      failureOf(pull(loading, source, named("mallory"))),
    ]);

    expect(alice.bytes).toEqual(WASM);
    expect(mallory.code).toBe("registry-auth-failed");
    expect(mallory.message).not.toContain("sha256:");
    // It was refused at the tag already.
    const blobs = asked(registry).filter((each) => each.endsWith(" blobs"));
    expect(blobs).toEqual(["GET blobs"]);
  });

  it("[§6.4] of a layer nobody is given what another credential fetches", async () => {
    const { manifestDigest } = registry.addModule("a/b", { wasm: WASM });
    const source = {
      ...pinned(`${registry.authority}/a/b`, manifestDigest),
      credentials: "regcred",
    };
    const good = `Basic ${btoa("alice:hunter2")}`;
    // Everybody may have the manifest, only Alice the layer, and that takes a while.
    registry.intercept(async ({ headers, path: asks }) => {
      if (!asks.includes("/blobs/")) return "pass";
      if (headers.authorization === good) {
        await delay(200);
        return "pass";
      }
      return {
        status: 401,
        headers: { "www-authenticate": 'Basic realm="r"' },
      };
    });
    const loading = rig.loader();

    const [alice, mallory] = await Promise.all([
      pull(loading, source, named("alice")),
      failureOf(pull(loading, source, named("mallory"))),
    ]);

    expect(alice.bytes).toEqual(WASM);
    expect(mallory.code).toBe("registry-auth-failed");
  });
});
