import { describe, expect, it } from "vitest";
import type { Credential } from "../../../../src/loader/oci/credential.js";
import { readStepCredential } from "../../../../src/loader/oci/step-credential.js";
import { createIsPlainHttp } from "../../../../src/loader/registry-scheme.js";
import type { Parsed } from "../../../../src/ports.js";

const AUTH = btoa("u:hunter2");
const U_P = { kind: "basic", username: "u", password: "hunter2" };
const isPlainHttp = createIsPlainHttp({
  insecureHosts: [],
  registryCas: new Map(),
});

describe("loader/oci/step-credential", () => {
  it.each([
    {
      name: ".dockerconfigjson",
      data: { ".dockerconfigjson": { auths: { "ghcr.io": { auth: AUTH } } } },
    },
    {
      name: "[C13] .dockercfg",
      data: { ".dockercfg": { "https://ghcr.io/v1/": { auth: AUTH } } },
    },
    {
      name: "username and password",
      data: { username: "u", password: "hunter2" },
    },
    {
      name: ".dockerconfigjson before the others",
      data: {
        username: "x",
        password: "hunter2-y",
        ".dockercfg": { "ghcr.io": { auth: btoa("x:hunter2-y") } },
        ".dockerconfigjson": { auths: { "ghcr.io": { auth: AUTH } } },
      },
    },
    {
      name: ".dockercfg before the pair",
      data: {
        username: "x",
        password: "hunter2-y",
        ".dockercfg": { "ghcr.io": { auth: AUTH } },
      },
    },
    {
      name: "the entry of the organization",
      data: {
        ".dockerconfigjson": {
          auths: {
            "ghcr.io": { auth: btoa("x:hunter2-y") },
            "ghcr.io/org-a": { auth: AUTH },
          },
        },
      },
    },
    {
      name: "an entry beside a store of another machine",
      data: {
        ".dockerconfigjson": {
          auths: { "ghcr.io": { auth: AUTH } },
          credsStore: "desktop",
        },
      },
    },
    {
      name: "an entry beside the helper of another registry",
      data: {
        ".dockerconfigjson": {
          auths: { "ghcr.io": { auth: AUTH } },
          credHelpers: { "a.io": "ecr-login" },
        },
      },
    },
    {
      name: "an entry whose registry has no helper by its own words",
      data: {
        ".dockerconfigjson": {
          auths: { "ghcr.io": { auth: AUTH } },
          credHelpers: { "ghcr.io": "" },
        },
      },
    },
    {
      name: "the entry with a secret of two for one place",
      data: {
        ".dockerconfigjson": {
          auths: { "https://ghcr.io": {}, "ghcr.io": { auth: AUTH } },
        },
      },
    },
  ])("reads $name", ({ data }) => {
    expect(read(data)).toEqual({ kind: "ok", value: U_P });
  });

  it("[C09] takes an entry without a secret for anonymous", () => {
    const data = { ".dockerconfigjson": { auths: { "ghcr.io": {} } } };

    expect(read(data)).toEqual({ kind: "ok", value: null });
  });

  it.each([
    {
      name: "[C16] the credential of another registry",
      data: { ".dockerconfigjson": { auths: { "a.io": { auth: AUTH } } } },
      want: 'the step credential "regcred" has no entry for ghcr.io (it has: a.io)',
    },
    {
      name: "[C11] the credential of another organization",
      data: {
        ".dockerconfigjson": { auths: { "ghcr.io/org-b": { auth: AUTH } } },
      },
      want: 'the step credential "regcred" has no entry for ghcr.io (it has: ghcr.io/org-b)',
    },
    {
      name: "more entries than are listed",
      data: {
        ".dockercfg": Object.fromEntries(
          Array.from({ length: 7 }, (_, i) => [`r${i}.io`, { auth: AUTH }]),
        ),
      },
      want: 'the step credential "regcred" has no entry for ghcr.io (it has: r0.io, r1.io, r2.io, r3.io, r4.io and 2 more)',
    },
    {
      name: "no entry but one whose key holds a secret",
      data: {
        ".dockerconfigjson": {
          auths: { "https://u:hunter2@ghcr.io": { auth: AUTH } },
        },
      },
      want: 'the step credential "regcred" has no entry for ghcr.io (it has: none)',
    },
    {
      name: "[C14] an entry that cannot be used",
      data: { ".dockerconfigjson": { auths: { "ghcr.io": { auth: "!" } } } },
      want: 'the step credential "regcred": the entry for ghcr.io cannot be used: auth is not base64',
    },
    {
      name: "a helper for the registry",
      data: {
        ".dockerconfigjson": {
          auths: { "ghcr.io": { auth: AUTH } },
          credHelpers: { "ghcr.io": "evil" },
        },
      },
      want: 'the step credential "regcred" names a credential helper for ghcr.io, which is not run for a step: expected the secret itself in auths',
    },
    {
      name: "a helper whose name is a number",
      data: { ".dockerconfigjson": { credHelpers: { "ghcr.io": 5 } } },
      want: 'the step credential "regcred" names a credential helper for ghcr.io, which is not run for a step: expected the secret itself in auths',
    },
    {
      name: "a store that has the secret",
      data: {
        ".dockerconfigjson": {
          auths: { "ghcr.io": {} },
          credsStore: "desktop",
        },
      },
      want: 'the step credential "regcred" names a credential helper for ghcr.io, which is not run for a step: expected the secret itself in auths',
    },
    {
      name: "a store alone",
      data: { ".dockerconfigjson": { credsStore: "desktop" } },
      want: 'the step credential "regcred" names a credential helper for ghcr.io, which is not run for a step: expected the secret itself in auths',
    },
    {
      name: "a .dockerconfigjson that is no JSON, whatever else there is",
      data: {
        ".dockerconfigjson": "hunter2",
        username: "u",
        password: "hunter2",
      },
      want: 'the step credential "regcred": .dockerconfigjson: it is not JSON',
    },
    {
      name: "a .dockercfg that is no JSON",
      data: { ".dockercfg": "hunter2" },
      want: 'the step credential "regcred": .dockercfg: it is not JSON',
    },
    ...["username", "password", "token"].map((key) => ({
      name: `${key} alone`,
      data: { [key]: "hunter2" },
      want: 'the step credential "regcred" has no key that is read, expected .dockerconfigjson, .dockercfg, or username and password',
    })),
    {
      name: "a pair that Basic cannot carry",
      data: { username: "u", password: "hunter2\n" },
      want: 'the step credential "regcred": the password has a control character, maybe a line break',
    },
    {
      name: "a password that is no text",
      data: { username: "u", password: Uint8Array.of(0xff) },
      want: 'the step credential "regcred": username or password is not UTF-8',
    },
    {
      name: "a username that is no text",
      data: { username: Uint8Array.of(0xff), password: "hunter2" },
      want: 'the step credential "regcred": username or password is not UTF-8',
    },
  ])("refuses $name", ({ data, want }) => {
    expect(read(data)).toEqual({ kind: "error", message: want });
  });

  it("escapes the credential's name and the hosts it lists", () => {
    const data = new Map([
      [".dockercfg", Buffer.from(`{"a.io/\\u202ex": {"auth": "${AUTH}"}}`)],
    ]);

    const parsed = readStepCredential(
      { name: 'a"\n', data },
      "ghcr.io",
      "org-a/x",
      isPlainHttp,
    );

    expect(parsed).toEqual({
      kind: "error",
      message:
        'the step credential "a\\"\\u000a" has no entry for ghcr.io (it has: a.io/\\u202ex)',
    });
  });
});

/** The credential `regcred` for ghcr.io/org-a/x; what is no text or bytes is written as JSON. */
function read(
  data: Readonly<Record<string, string | object>>,
): Parsed<Credential | null> {
  const bytes = Object.entries(data).map(
    ([key, value]) =>
      [
        key,
        value instanceof Uint8Array
          ? value
          : Buffer.from(
              typeof value === "string" ? value : JSON.stringify(value),
            ),
      ] as const,
  );
  return readStepCredential(
    { name: "regcred", data: new Map(bytes) },
    "ghcr.io",
    "org-a/x",
    isPlainHttp,
  );
}
