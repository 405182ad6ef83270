import { afterAll, describe, expect, it } from "vitest";

import {
  AdmissionError,
  compositeFromJson,
  createAdmission,
  type Admission,
  type JsonObject,
} from "../../../src/admission/index.js";
import type { HttpUrl, RedirectFence } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { createTestPolicyEngine } from "../../support/policy-engine.js";
import { sourceParsers } from "../../support/source-parsers.js";
import { recordingLogger } from "../function/fixtures.js";

/** Its threads take a moment to start, so the tests share it. */
const engine = createTestPolicyEngine();
afterAll(() => engine.close());

const admission: Admission = createAdmission({
  ceilings: {
    timeoutMs: 1000,
    timeoutText: "1s",
    memoryBytes: 65536,
    memoryText: "64Ki",
    moduleDirSet: true,
    allowUnpinnedTags: false,
  },
  parsers: sourceParsers,
  engine,
  operatorPolicy: () => null,
});

const digest = `sha256:${"a".repeat(64)}`;
const ref = `ghcr.io/a/b@${digest}`;
const http = { url: "https://files.example.com/m.wasm?sig=hunter2", digest };
const permit = (...hosts: readonly string[]) =>
  hosts
    .map(
      (host) =>
        `permit(principal, action == Action::"pullModule", resource in Repository::"${host}");\n`,
    )
    .join("");
const policy = permit("https://files.example.com", "https://cdn.example.com");

/** What a step may choose, with the defaults of a step whose XR chooses a URL. */
interface Step {
  readonly module?: JsonObject;
  readonly compositionPolicy?: string;
  readonly chosen?: JsonObject | string;
  readonly namespace?: string;
  readonly kind?: string;
}

async function choose(
  {
    module = { type: "HTTP", from: "spec.module" },
    compositionPolicy = policy,
    chosen = http,
    namespace = "team-a",
    kind = "XApp",
  }: Step,
  scope = createRequestScope({ deadlineAtMs: Infinity }),
) {
  const choice = await admission.chooseSource(
    admission.readInput({
      apiVersion: "wasm.fn.crossplane.io/v1",
      kind: "Input",
      module,
      compositionPolicy,
    }),
    compositeFromJson({
      kind,
      metadata: { namespace },
      spec: { module: chosen, other: chosen },
    }),
    recordingLogger().logger,
    scope,
  );
  if (choice.kind === "empty") throw new Error("nothing was chosen");
  return choice;
}

async function fenceOf(step: Step = {}): Promise<RedirectFence> {
  const { redirectFence } = await choose(step);
  if (redirectFence === null) throw new Error("there is no fence");
  return redirectFence;
}

function url(text: string): HttpUrl {
  const parsed = sourceParsers.parseHttpUrl(text);
  if (parsed.kind === "error") throw new Error(parsed.message);
  return parsed.value;
}

describe("admission/admission redirectFence", () => {
  it.each([
    {
      name: "a Path that the XR chose",
      step: { module: { type: "Path", from: "spec.module" }, chosen: "m.wasm" },
    },
    {
      name: "a reference that the XR chose",
      step: {
        module: { type: "OCI", from: "spec.module" },
        compositionPolicy: permit("ghcr.io"),
        chosen: { ref },
      },
    },
    {
      name: "the Input's reference",
      step: { module: { type: "OCI", oci: { ref } } },
    },
    {
      name: "the Input's URL",
      step: { module: { type: "HTTP", http } },
    },
  ] satisfies { name: string; step: Step }[])(
    "is not there for $name",
    async ({ step }) => {
      const { redirectFence, source } = await choose(step);

      expect(source.type).toBe(step.module.type);
      expect(redirectFence).toBeNull();
    },
  );

  it("admits what the compositionPolicy permits, on any path and with any query", async () => {
    const fence = await fenceOf();

    await fence.admit(url("https://files.example.com/other.wasm"));
    await fence.admit(url("https://cdn.example.com/x?token=hunter2"));
  });

  it.each([
    {
      name: "another host",
      to: "https://evil.example.com/m.wasm",
      shown: "https://evil.example.com/m.wasm",
    },
    {
      name: "another port",
      to: "https://files.example.com:8443/m.wasm",
      shown: "https://files.example.com:8443/m.wasm",
    },
    {
      name: "a secret query, which is not told",
      to: "https://evil.example.com/m.wasm?sig=hunter2",
      shown: "https://evil.example.com/m.wasm",
    },
  ])("refuses $name", async ({ to, shown }) => {
    const fence = await fenceOf();

    const refused = fence.admit(url(to));

    await expect(refused).rejects.toBeInstanceOf(AdmissionError);
    await expect(refused).rejects.toMatchObject({
      code: "pull-refused",
      message: `cannot resolve module: module.from: spec.module of the composite resource names a url that redirects to "${shown}", which the compositionPolicy does not permit (pullModule)`,
    });
  });

  it("refuses what a rule forbids, whatever another one permits", async () => {
    const forbid = `forbid(principal, action == Action::"pullModule", resource in Repository::"https://cdn.example.com/private");\n`;
    const fence = await fenceOf({ compositionPolicy: policy + forbid });

    await fence.admit(url("https://cdn.example.com/public/m"));
    await expect(
      fence.admit(url("https://cdn.example.com/private/m")),
    ).rejects.toMatchObject({ code: "pull-refused" });
  });

  it("asks on behalf of the XR that chose the URL", async () => {
    const teams = `${permit("https://files.example.com")}permit(principal, action == Action::"pullModule", resource in Repository::"https://cdn.example.com") when { principal.namespace == "team-a" && principal.xrKind == "XApp" };\n`;
    const admit = async (step: Step) => {
      const fence = await fenceOf({ compositionPolicy: teams, ...step });
      await fence.admit(url("https://cdn.example.com/m"));
    };

    await admit({});
    await expect(admit({ namespace: "team-b" })).rejects.toThrow("redirects");
    await expect(admit({ kind: "XOther" })).rejects.toThrow("redirects");
  });

  it("goes on judging when the request that made it has gone", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const { redirectFence } = await choose({}, scope);
    scope.cancel();

    // Places that nobody asked about before: what is remembered needs no engine.
    await redirectFence?.admit(url("https://cdn.example.com/after-the-end"));
    await expect(
      redirectFence?.admit(url("https://evil.example.com/after-the-end")),
    ).rejects.toMatchObject({ code: "pull-refused" });
  });

  describe("key", () => {
    it("is the same for fences that judge alike", async () => {
      const keys = [
        await fenceOf(),
        await fenceOf({ chosen: { ...http, url: `${http.url}2` } }),
      ].map(({ key }) => key);

      expect(keys[0]).toBe(keys[1]);
    });

    it.each([
      {
        name: "policies",
        step: { compositionPolicy: `${policy}${permit("https://x.test")}` },
      },
      { name: "namespaces", step: { namespace: "team-b" } },
      { name: "kinds", step: { kind: "XOther" } },
      {
        name: "the field, which the refusal names",
        step: { module: { type: "HTTP", from: "spec.other" } },
      },
      { name: "an XR without namespace", step: { namespace: "" } },
      {
        name: "which of the two is the namespace",
        step: { namespace: "XApp", kind: "team-a" },
      },
    ])("differs by $name", async ({ step }) => {
      expect((await fenceOf(step)).key).not.toBe((await fenceOf()).key);
    });
  });
});
