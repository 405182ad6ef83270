import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../src/loader/error.js";
import { describeSource, namingSource } from "../../../src/loader/naming.js";
import { sourceParsers } from "../../support/source-parsers.js";
import { tagged } from "./loading.js";

const digest = `sha256:${"a".repeat(64)}` as const;

function urlOf(text: string) {
  const parsed = sourceParsers.parseHttpUrl(text);
  if (parsed.kind === "error") throw new Error(parsed.message);
  return parsed.value;
}

async function thrownBy(work: () => Promise<unknown>): Promise<unknown> {
  return await namingSource("OCI h.test/a", work).then(
    () => "nothing",
    (thrown: unknown) => thrown,
  );
}

describe("loader/naming describeSource", () => {
  it.each([
    {
      name: "a path, escaped",
      source: { type: "Path", path: "a\n\u202eb.wasm", manifestPath: "m.yaml" },
      want: "Path a\\u000a\\u202eb.wasm",
    },
    {
      name: "a reference in its canonical form",
      source: tagged(`alpine:3@${digest}`, { credentials: "hunter2" }),
      want: `OCI index.docker.io/library/alpine:3@${digest}`,
    },
    {
      name: "a URL without its query, which may be a secret",
      source: {
        type: "HTTP",
        url: urlOf("https://Files.example.com/m.wasm?sig=hunter2"),
        digest,
        manifest: null,
      },
      want: "HTTP https://files.example.com/m.wasm",
    },
  ] satisfies {
    name: string;
    source: Parameters<typeof describeSource>[0];
    want: string;
  }[])("calls it $name", ({ source, want }) => {
    expect(describeSource(source)).toBe(want);
  });
});

describe("loader/naming namingSource", () => {
  it("gives what the work gives", async () => {
    expect(await namingSource("OCI x", () => Promise.resolve(7))).toBe(7);
  });

  it("puts the module before the reason, and keeps everything else", async () => {
    const cause = new Error("ECONNRESET");
    const thrown = await thrownBy(() =>
      Promise.reject(
        new LoaderError("registry-unreachable", "h.test: it broke", {
          cause,
          detail: "for the log",
        }),
      ),
    );

    expect(thrown).toBeInstanceOf(LoaderError);
    expect(thrown).toMatchObject({
      code: "registry-unreachable",
      message: "cannot resolve module: module OCI h.test/a: h.test: it broke",
      cause,
      detail: "for the log",
    });
  });

  it("is caused by the reason itself where that has no cause", async () => {
    const reason = new LoaderError("module-empty", "it has no bytes");

    const thrown = await thrownBy(() => Promise.reject(reason));

    expect(thrown).toMatchObject({ cause: reason, detail: undefined });
  });

  it.each([
    { name: "faults", error: new TypeError("x is undefined") },
    // Such as what a fence throws, which is a sentence of its own.
    { name: "refusals by others", error: new Error("pull-refused") },
  ])("leaves $name as they are", async ({ error }) => {
    expect(await thrownBy(() => Promise.reject(error))).toBe(error);
  });
});
