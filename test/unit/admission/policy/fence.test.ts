import { describe, expect, it } from "vitest";

import type { Question } from "../../../../src/admission/cedar/policy.js";
import { AdmissionError } from "../../../../src/admission/index.js";
import { fenceChosenSource } from "../../../../src/admission/policy/fence.js";
import type { ModuleSource } from "../../../../src/ports.js";
import { fakeLayer } from "./fixtures.js";

type Fenced = Exclude<ModuleSource, { type: "Path" }>;

const digest = `sha256:${"a".repeat(64)}` as const;

const oci = (credentials: string | null = null): Fenced => ({
  type: "OCI",
  ref: {
    registry: "index.docker.io",
    repository: "someone/else",
    tag: null,
    digest,
    location: "index.docker.io/someone/else",
    text: `index.docker.io/someone/else@${digest}`,
  },
  expectedDigest: null,
  credentials,
});

const url = (path: string) => ({
  href: `https://files.example.com${path}?sig=hunter2`,
  location: `https://files.example.com${path}`,
});

const http = (manifest: boolean): Fenced => ({
  type: "HTTP",
  url: url("/fn.wasm"),
  digest,
  manifest: manifest ? { url: url("/wasmfn.yaml"), digest } : null,
});

async function fence(
  source: Fenced,
  permits: (question: Question) => boolean,
): Promise<{ asked: Question[]; error: AdmissionError | undefined }> {
  const layer = fakeLayer(permits);
  const outcome = await fenceChosenSource(source, "status.module", layer).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (outcome !== undefined) expect(outcome).toBeInstanceOf(AdmissionError);
  return { asked: layer.asked, error: outcome as AdmissionError | undefined };
}

const pull = (location: string): Question => ({
  action: "pullModule",
  location,
});
const repository = "index.docker.io/someone/else";
const spend: Question = {
  action: "spendCredential",
  credential: "registry",
  repository,
};
const sentence =
  "cannot resolve module: module.from: status.module of the composite resource names";

describe("admission/policy/fence", () => {
  it.each([
    { name: "an OCI source", source: oci(), asked: [pull(repository)] },
    {
      name: "an OCI source with a credential",
      source: oci("registry"),
      asked: [pull(repository), spend],
    },
    {
      name: "an HTTP source",
      source: http(false),
      asked: [pull("https://files.example.com/fn.wasm")],
    },
    {
      name: "an HTTP source with a manifest",
      source: http(true),
      asked: [
        pull("https://files.example.com/fn.wasm"),
        pull("https://files.example.com/wasmfn.yaml"),
      ],
    },
  ] satisfies { name: string; source: Fenced; asked: Question[] }[])(
    "asks all that matters of $name, by canonical location",
    async ({ source, asked }) => {
      const result = await fence(source, () => true);

      expect(result).toEqual({ asked, error: undefined });
    },
  );

  it.each([
    {
      name: "a ref",
      source: oci("registry"),
      refused: pull(repository),
      asked: 1,
      code: "pull-refused",
      message: `${sentence} ref "index.docker.io/someone/else", which the compositionPolicy does not permit (pullModule)`,
    },
    {
      name: "a url",
      source: http(true),
      refused: pull("https://files.example.com/fn.wasm"),
      asked: 1,
      code: "pull-refused",
      message: `${sentence} url "https://files.example.com/fn.wasm", which the compositionPolicy does not permit (pullModule)`,
    },
    {
      name: "a manifestURL",
      source: http(true),
      refused: pull("https://files.example.com/wasmfn.yaml"),
      asked: 2,
      code: "pull-refused",
      message: `${sentence} manifestURL "https://files.example.com/wasmfn.yaml", which the compositionPolicy does not permit (pullModule)`,
    },
    {
      name: "a credential",
      source: oci("registry"),
      refused: spend,
      asked: 2,
      code: "spend-refused",
      message: `${sentence} credentials "registry", which the compositionPolicy does not permit (spendCredential) for "index.docker.io/someone/else": a module chosen by the composite resource cannot spend a step credential (the registry host would be its author's) unless the compositionPolicy permits it for that repository; otherwise pull it with the runtime's Docker config or anonymously`,
    },
  ])("refuses $name, and asks nothing more", async (row) => {
    const { asked, error } = await fence(
      row.source,
      (question) => JSON.stringify(question) !== JSON.stringify(row.refused),
    );

    expect(error?.code).toBe(row.code);
    expect(error?.message).toBe(row.message);
    expect(asked).toHaveLength(row.asked);
  });
});
