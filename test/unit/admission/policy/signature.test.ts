import { describe, expect, it } from "vitest";

import type { ActionName } from "../../../../src/admission/cedar/policy.js";
import { AdmissionError } from "../../../../src/admission/index.js";
import { refuseUnverifiable } from "../../../../src/admission/policy/signature.js";
import { sourceParsers } from "../../../support/source-parsers.js";
import type { ModuleSource, Parsed } from "../../../../src/ports.js";
import { recordingLogger } from "../../function/fixtures.js";
import { compiledPolicy, fakePolicyEngine } from "./fixtures.js";

const digest = `sha256:${"a".repeat(64)}` as const;

function ok<T>(parsed: Parsed<T>): T {
  if (parsed.kind === "error") throw new Error(parsed.message);
  return parsed.value;
}

const oci: ModuleSource = {
  type: "OCI",
  ref: ok(sourceParsers.parseReference(`GHCR.io:443/secure/x@${digest}`)),
  expectedDigest: null,
  credentials: null,
};
const http: ModuleSource = {
  type: "HTTP",
  url: ok(
    sourceParsers.parseHttpUrl("https://Example.com/fn.wasm?sig=hunter2"),
  ),
  digest,
  manifest: null,
};
const path: ModuleSource = { type: "Path", path: "m.wasm", manifestPath: null };

async function judge(
  source: ModuleSource,
  demanded: boolean,
  scoped: readonly ActionName[] = ["requireSignature"],
) {
  const asked: unknown[] = [];
  const engine = fakePolicyEngine((_policy, principal, question) => {
    asked.push(principal, question);
    return Promise.resolve({ allowed: demanded, rules: [] });
  });
  const outcome: unknown = await refuseUnverifiable(
    source,
    compiledPolicy("demand", scoped),
    { engine, logger: recordingLogger().logger, scope: null },
  ).catch((thrown: unknown) => thrown);
  if (outcome !== undefined) expect(outcome).toBeInstanceOf(AdmissionError);
  return { asked, error: outcome as AdmissionError | undefined };
}

const nobody = { namespace: "", xrKind: "" };

describe("admission/policy/signature", () => {
  it.each([
    {
      source: oci,
      location: "ghcr.io/secure/x",
      module: `OCI ghcr.io/secure/x@${digest}`,
    },
    {
      source: http,
      location: "https://example.com/fn.wasm",
      module: "HTTP https://example.com/fn.wasm",
    },
  ])(
    "refuses an unsigned $source.type module by its canonical location",
    async ({ source, location, module }) => {
      const { asked, error } = await judge(source, true);

      expect(asked).toEqual([nobody, { action: "requireSignature", location }]);
      expect([error?.code, error?.message]).toEqual([
        "signature-unverifiable",
        `cannot verify module ${module}: the operator policy requires a signature (requireSignature), and this runtime does not support signatures yet`,
      ]);
    },
  );

  it("lets a module pass that need not be signed", async () => {
    expect((await judge(oci, false)).error).toBeUndefined();
    expect((await judge(http, false)).error).toBeUndefined();
  });

  it("asks nothing of a policy that demands no signatures", async () => {
    expect(await judge(oci, true, ["setEnv"])).toEqual({
      asked: [],
      error: undefined,
    });
  });

  it("does not ask about a Path module", async () => {
    expect(await judge(path, true)).toEqual({ asked: [], error: undefined });
  });
});
