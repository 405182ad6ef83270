import { describe, expect, it } from "vitest";

import { namingPlaceOnce } from "../../../../src/cli/module/place-once.js";
import { LoaderError } from "../../../../src/loader/index.js";
import { sourceParsers } from "../../../support/source-parsers.js";

const DIGEST = `sha256:${"0".repeat(64)}`;

describe("cli/module/place-once", () => {
  it.each([
    {
      name: "a registry that does not begin to answer",
      message: "cannot push reg.test/a/b:v1: reg.test: no answer within 30 s",
      want: "cannot push reg.test/a/b:v1: no answer within 30 s",
    },
    {
      name: "a repository that answers with a status",
      message: "cannot push reg.test/a/b:v1: reg.test/a/b: HTTP 403 Forbidden",
      want: "cannot push reg.test/a/b:v1: HTTP 403 Forbidden",
    },
    {
      name: "a registry that a sentence begins with",
      message: "cannot push reg.test/a/b:v1: reg.test refused the credential",
      want: "cannot push reg.test/a/b:v1: the registry refused the credential",
    },
    {
      name: "an upload that is sent elsewhere",
      message:
        "cannot push reg.test/a/b:v1: reg.test/a/b sent on to up.test: connection refused (ECONNREFUSED)",
      want: "cannot push reg.test/a/b:v1: the registry sent on to up.test: connection refused (ECONNREFUSED)",
    },
    {
      name: "what a tag led to",
      message: `cannot resolve module: module OCI reg.test/a/b:v1@${DIGEST}: reg.test: the answer stalled`,
      want: `cannot resolve module: module OCI reg.test/a/b:v1@${DIGEST}: the answer stalled`,
    },
    {
      name: "a port",
      text: "reg.test:5000/a/b",
      message: "cannot push reg.test:5000/a/b: reg.test:5000: TLS failed",
      want: "cannot push reg.test:5000/a/b: TLS failed",
    },
    {
      name: "a default port, which URLs leave out",
      text: "reg:443/a/b:v1",
      message: "cannot push reg:443/a/b:v1: reg: no such host (ENOTFOUND)",
      want: "cannot push reg:443/a/b:v1: no such host (ENOTFOUND)",
    },
    {
      name: "another server, by its name",
      message: "cannot push reg.test/a/b:v1: auth.reg.test: no such host",
      want: "cannot push reg.test/a/b:v1: auth.reg.test: no such host",
    },
    {
      name: "another server whose name begins as the registry's",
      message: "cannot push reg.test/a/b:v1: reg.test.evil: no such host",
      want: "cannot push reg.test/a/b:v1: reg.test.evil: no such host",
    },
    {
      name: "a sentence without a reference",
      message: "the client was closed",
      want: "the client was closed",
    },
  ])("names $name once", async ({ message, text, want }) => {
    const error = new LoaderError("registry-unreachable", message, {
      detail: "for the log",
    });

    const failed = namingPlaceOnce(reference(text ?? "reg.test/a/b:v1"), () =>
      Promise.reject(error),
    );

    await expect(failed).rejects.toMatchObject({
      name: "LoaderError",
      code: "registry-unreachable",
      detail: "for the log",
      message: want,
    });
  });

  it("gives back what comes of the work, and leaves other errors alone", async () => {
    const ref = reference("reg.test/a/b:v1");
    const bug = new Error("reg.test/a/b:v1: reg.test: a fault");

    expect(await namingPlaceOnce(ref, () => Promise.resolve(1))).toBe(1);
    await expect(namingPlaceOnce(ref, () => Promise.reject(bug))).rejects.toBe(
      bug,
    );
  });
});

function reference(text: string) {
  const parsed = sourceParsers.parseReference(text);
  if (parsed.kind === "ok") return parsed.value;
  throw new Error(parsed.message);
}
