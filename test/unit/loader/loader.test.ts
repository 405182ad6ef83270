import { describe, expect, it } from "vitest";
import { createLoader, LoaderError } from "../../../src/loader/index.js";
import type { ModuleSource } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";

const DIGEST = `sha256:${"0".repeat(64)}` as const;

describe("loader/loader", () => {
  it.each([
    {
      name: "OCI",
      source: { type: "OCI", ref: "ghcr.io/example/greeter:v1" },
      want: "cannot resolve module: module OCI ghcr.io/example/greeter:v1: module type OCI is not supported yet, this runtime loads Path modules only",
    },
    {
      name: "an OCI ref with a line break",
      source: { type: "OCI", ref: "ghcr.io/a\nfatal" },
      want: "cannot resolve module: module OCI ghcr.io/a\\u000afatal: module type OCI is not supported yet, this runtime loads Path modules only",
    },
    {
      name: "HTTP, without the secrets of its URL",
      source: {
        type: "HTTP",
        url: "https://user:pw@example.com/a.wasm?sig=s#f",
        digest: DIGEST,
      },
      want: "cannot resolve module: module HTTP https://example.com/a.wasm: module type HTTP is not supported yet, this runtime loads Path modules only",
    },
    {
      name: "HTTP, a URL of another scheme",
      source: { type: "HTTP", url: "user:pw@", digest: DIGEST },
      want: "cannot resolve module: module HTTP (no http or https URL): module type HTTP is not supported yet, this runtime loads Path modules only",
    },
    {
      name: "HTTP, no URL at all",
      source: { type: "HTTP", url: "//pw@host", digest: DIGEST },
      want: "cannot resolve module: module HTTP (no http or https URL): module type HTTP is not supported yet, this runtime loads Path modules only",
    },
  ] satisfies { name: string; source: ModuleSource; want: string }[])(
    "refuses $name",
    async ({ source, want }) => {
      expect(await refusal(source)).toEqual({
        code: "source-not-supported",
        message: want,
      });
    },
  );

  it("refuses a Path source without --module-dir", async () => {
    expect(await refusal({ type: "Path", path: "a.wasm" })).toEqual({
      code: "module-dir-unset",
      message:
        "cannot resolve module: module Path a.wasm: the runtime has no --module-dir",
    });
  });
});

async function refusal(
  source: ModuleSource,
): Promise<{ code: string; message: string }> {
  const clock = { nowMs: () => 0, monotonicMs: () => 0 };
  const loader = createLoader({ moduleDir: null, maxModuleBytes: 1024 }, clock);
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  const error: unknown = await loader.resolve(source, scope).then(
    () => "resolved",
    (thrown: unknown) => thrown,
  );
  if (error instanceof LoaderError)
    return { code: error.code, message: error.message };
  throw error;
}
