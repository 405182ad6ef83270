import { describe, expect, it } from "vitest";
import {
  createLoader,
  type Loader,
  LoaderError,
  sourceParsers,
} from "../../../src/loader/index.js";
import type { ModuleSource, Parsed } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";

const DIGEST = `sha256:${"0".repeat(64)}` as const;
const scope = createRequestScope({ deadlineAtMs: Infinity });

describe("loader/loader", () => {
  describe.each(["resolve", "manifest"] as const)("%s", (method) => {
    it.each([
      {
        name: "OCI",
        source: oci(`GHCR.io/example/greeter:v1@${DIGEST}`),
        want: `cannot resolve module: module OCI ghcr.io/example/greeter:v1@${DIGEST}: module type OCI is not supported yet, this runtime loads Path modules only`,
      },
      {
        name: "HTTP, without the query, which is often a secret",
        source: http("https://example.com/a.wasm?sig=s"),
        want: "cannot resolve module: module HTTP https://example.com/a.wasm: module type HTTP is not supported yet, this runtime loads Path modules only",
      },
    ])("refuses $name", async ({ source, want }) => {
      expect(await refusal((loader) => loader[method](source, scope))).toEqual({
        code: "source-not-supported",
        message: want,
      });
    });
  });

  it("refuses a Path source without --module-dir", async () => {
    expect(
      await refusal((loader) => loader.resolve(path(null), scope)),
    ).toEqual({
      code: "module-dir-unset",
      message:
        "cannot resolve module: module Path a.wasm: the runtime has no --module-dir",
    });
  });

  it("refuses a manifestPath without --module-dir", async () => {
    expect(
      await refusal((loader) => loader.manifest(path("wasmfn.yaml"), scope)),
    ).toEqual({
      code: "module-dir-unset",
      message:
        "cannot resolve module: module.manifestPath wasmfn.yaml: the runtime has no --module-dir",
    });
  });

  it("has no manifest for a Path source that names none", async () => {
    expect(await createTestLoader().manifest(path(null), scope)).toBeNull();
  });
});

function createTestLoader(): Loader {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  return createLoader({ moduleDir: null, maxModuleBytes: 1024 }, clock);
}

function path(manifestPath: string | null): ModuleSource {
  return { type: "Path", path: "a.wasm", manifestPath };
}

function oci(text: string): ModuleSource {
  const ref = parsed(sourceParsers.parseReference(text));
  return { type: "OCI", ref, expectedDigest: null, credentials: null };
}

function http(text: string): ModuleSource {
  const url = parsed(sourceParsers.parseHttpUrl(text));
  return { type: "HTTP", url, digest: DIGEST, manifest: null };
}

function parsed<T>(result: Parsed<T>): T {
  if (result.kind === "ok") return result.value;
  throw new Error(result.message);
}

/** What a loader says no with; fails when it says yes or breaks. */
async function refusal(
  ask: (loader: Loader) => Promise<unknown>,
): Promise<{ code: string; message: string }> {
  const outcome: unknown = await ask(createTestLoader()).catch(
    (thrown: unknown) => thrown,
  );
  if (outcome instanceof LoaderError)
    return { code: outcome.code, message: outcome.message };
  throw new Error(`no LoaderError but ${JSON.stringify(outcome)}`, {
    cause: outcome,
  });
}
