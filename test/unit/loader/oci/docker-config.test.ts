import { describe, expect, it } from "vitest";
import {
  type DockerConfig,
  parseDockerConfig,
  parseLegacyDockerConfig,
} from "../../../../src/loader/oci/docker-config.js";
import { createIsPlainHttp } from "../../../../src/loader/registry-scheme.js";

const AUTH = btoa("u:hunter2");
const U_P = { kind: "basic", username: "u", password: "hunter2" };
const MIB = 1024 * 1024;
const isPlainHttp = createIsPlainHttp({
  insecureHosts: [],
  registryCas: new Map(),
});

describe("loader/oci/docker-config", () => {
  it.each([
    { name: "auth", entry: { auth: AUTH }, want: U_P },
    {
      name: "username and password",
      entry: { username: "u", password: "hunter2", email: "a@b.c" },
      want: U_P,
    },
    {
      name: "auth before the fields it is made of",
      entry: { auth: AUTH, username: "x", password: "hunter2-y" },
      want: U_P,
    },
    {
      name: "fields beside an auth that is empty",
      entry: { auth: "", username: "u", password: "hunter2" },
      want: U_P,
    },
    {
      name: "identitytoken",
      entry: { identitytoken: "hunter2" },
      want: { kind: "identity-token", token: "hunter2" },
    },
    {
      name: "identitytoken before the placeholder <token>",
      entry: { auth: base64("<token>:"), identitytoken: "hunter2" },
      want: { kind: "identity-token", token: "hunter2" },
    },
    {
      name: "identitytoken before the placeholder of Azure",
      entry: {
        auth: base64("00000000-0000-0000-0000-000000000000:"),
        identitytoken: "hunter2",
      },
      want: { kind: "identity-token", token: "hunter2" },
    },
    {
      name: "registrytoken before all",
      entry: {
        auth: AUTH,
        identitytoken: "hunter2-i",
        registrytoken: "hunter2-r",
      },
      want: { kind: "registry-token", token: "hunter2-r" },
    },
  ])("reads $name", ({ entry, want }) => {
    const { auths } = read({ auths: { "ghcr.io": entry } });

    expect(auths).toMatchObject([
      { key: { text: "ghcr.io" }, kind: "credential", credential: want },
    ]);
  });

  it.each([
    { name: "no fields", entry: {} },
    { name: "null", entry: null },
    { name: "a mail address only", entry: { email: "a@b.c" } },
    { name: "fields that are empty", entry: { auth: "", password: "" } },
    { name: "fields that are null", entry: { auth: null } },
  ])("calls an entry with $name empty", ({ entry }) => {
    expect(read({ auths: { "a.io": entry } }).auths).toMatchObject([
      { kind: "empty" },
    ]);
  });

  it.each([
    { name: "a text", entry: "hunter2", want: "expected a JSON object" },
    { name: "a list", entry: ["hunter2"], want: "expected a JSON object" },
    {
      name: "an auth of a number",
      entry: { auth: 5 },
      want: "auth is no string",
    },
    {
      name: "an auth that is no base64",
      entry: { auth: "hunter2!" },
      want: "auth is not base64",
    },
    {
      name: "an auth without a colon",
      entry: { auth: base64("hunter2") },
      want: "auth has no colon, expected user:password",
    },
    {
      name: "an auth that is no base64 beside a pair",
      entry: { auth: "!", username: "u", password: "hunter2" },
      want: "auth is not base64",
    },
    {
      name: "a username alone",
      entry: { username: "hunter2" },
      want: "it has a username, but no password",
    },
    {
      name: "a password alone",
      entry: { password: "hunter2" },
      want: "it has a password, but no username",
    },
    {
      name: "a token that no header carries",
      entry: { registrytoken: "hunter2\n" },
      want: "the token has blanks, control or non-ASCII characters",
    },
    {
      name: "a broken token beside a good auth",
      entry: { auth: AUTH, identitytoken: ["hunter2"] },
      want: "identitytoken is no string",
    },
  ])("[C09][C14] $name is a problem of its entry alone", ({ entry, want }) => {
    const { auths } = read({
      auths: { "a.io": entry, "ghcr.io": { auth: AUTH } },
    });

    expect(auths).toEqual([
      expect.objectContaining({ kind: "problem", problem: want }),
      expect.objectContaining({ kind: "credential", credential: U_P }),
    ]);
  });

  it("puts entries without a secret last, and leaves out keys that name no registry", () => {
    const { auths } = read({
      auths: {
        "https://a.io": {},
        "https://user:hunter2@b.io": { auth: AUTH },
        "a.io": { auth: AUTH },
        "b.io": { auth: AUTH },
        __proto__: null,
      },
    });

    expect(auths.map(({ key, kind }) => [key.text, kind])).toEqual([
      ["a.io", "credential"],
      ["b.io", "credential"],
      ["a.io", "empty"],
    ]);
  });

  it("reads the helpers, a bad one as a problem of its own", () => {
    const { credHelpers, credsStore } = read({
      credsStore: "desktop",
      credHelpers: { "a.io": "ecr-login", "b.io": 5, "c.io": "", "?": "x" },
    });

    expect(credsStore).toBe("desktop");
    expect(
      credHelpers.map(({ key, name }) => [
        key.text,
        name.kind === "ok" ? name.value : name,
      ]),
    ).toEqual([
      ["a.io", "ecr-login"],
      ["b.io", { kind: "error", message: "the helper for b.io is no string" }],
      ["c.io", ""],
    ]);
  });

  it.each([
    { name: "nothing of it all", config: {} },
    {
      name: "null and empty fields",
      config: { auths: null, credHelpers: null, credsStore: null },
    },
    { name: "an empty store", config: { credsStore: "", auths: {} } },
  ])("reads a config with $name", ({ config }) => {
    expect(read(config)).toEqual({
      auths: [],
      credHelpers: [],
      credsStore: null,
    });
  });

  it("ignores a byte order mark and everything that is not about credentials", () => {
    const text = `\ufeff{"proxies": [], "auths": {"a.io": {"auth": "${AUTH}"}}}`;

    expect(parseDockerConfig(Buffer.from(text), isPlainHttp)).toMatchObject({
      kind: "ok",
    });
  });

  it.each([
    { name: "no JSON", text: 'hunter2 {"auths', want: "it is not JSON" },
    { name: "nothing", text: "", want: "it is not JSON" },
    { name: "no UTF-8", text: Uint8Array.of(0xff), want: "it is not UTF-8" },
    { name: "a list", text: "[]", want: "expected a JSON object" },
    { name: "null", text: "null", want: "expected a JSON object" },
    { name: "a text", text: '"hunter2"', want: "expected a JSON object" },
    {
      name: "auths that are a list",
      text: '{"auths": ["hunter2"]}',
      want: "auths: expected a JSON object",
    },
    {
      name: "credHelpers that are a text",
      text: '{"credHelpers": "hunter2"}',
      want: "credHelpers: expected a JSON object",
    },
    {
      name: "a credsStore that is a number",
      text: '{"credsStore": 5}',
      want: "credsStore is no string",
    },
    {
      name: "more than 1 MiB",
      text: "{}".padEnd(MIB + 1),
      want: `it has ${MIB + 1} bytes, expected at most ${MIB}`,
    },
    {
      name: "more than 1024 entries",
      text: JSON.stringify({ auths: entries(1025) }),
      want: "auths: 1025 entries, expected at most 1024",
    },
    {
      name: "more than 1024 helpers",
      text: JSON.stringify({ credHelpers: entries(1025) }),
      want: "credHelpers: 1025 entries, expected at most 1024",
    },
  ])("refuses $name, and repeats nothing of it", ({ text, want }) => {
    expect(parseDockerConfig(Buffer.from(text), isPlainHttp)).toEqual({
      kind: "error",
      message: want,
    });
  });

  it("reads just 1 MiB and 1024 entries", () => {
    const text = JSON.stringify({ auths: entries(1024) }).padEnd(MIB);

    const parsed = parseDockerConfig(Buffer.from(text), isPlainHttp);

    expect(parsed.kind === "ok" && parsed.value.auths).toHaveLength(1024);
  });

  it("[C13] reads a .dockercfg, which is the auths alone", () => {
    const text = JSON.stringify({
      "https://index.docker.io/v1/": { auth: AUTH, email: "a@b.c" },
      credsStore: "desktop",
    });

    const parsed = parseLegacyDockerConfig(Buffer.from(text), isPlainHttp);

    expect(parsed).toMatchObject({
      kind: "ok",
      value: { credHelpers: [], credsStore: null },
    });
    expect(parsed.kind === "ok" && parsed.value.auths[0]).toMatchObject({
      key: { host: "index.docker.io" },
      credential: U_P,
    });
  });

  it.each([
    { name: "no JSON", text: "hunter2", want: "it is not JSON" },
    {
      name: "too many entries",
      text: JSON.stringify(entries(1025)),
      want: "1025 entries, expected at most 1024",
    },
  ])("refuses a .dockercfg of $name", ({ text, want }) => {
    const parsed = parseLegacyDockerConfig(Buffer.from(text), isPlainHttp);

    expect(parsed).toEqual({
      kind: "error",
      message: expect.stringContaining(want) as string,
    });
  });
});

function read(config: object): DockerConfig {
  const parsed = parseDockerConfig(
    Buffer.from(JSON.stringify(config)),
    isPlainHttp,
  );
  if (parsed.kind === "error") throw new Error(parsed.message);
  return parsed.value;
}

function entries(count: number): Record<string, object> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, i) => [`r${i}.io`, {}]),
  );
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
