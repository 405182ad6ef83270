import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import type { HttpRequest } from "../../../../src/loader/http/transport.js";
import {
  requestToken,
  type Token,
  type TokenRequest,
} from "../../../../src/loader/oci/token.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { type ScriptedAnswer, scriptedSend } from "./scripted-send.js";

const BASIC = {
  kind: "basic",
  username: "hunter2-user",
  password: "hunter2:pässword",
} as const;
const IDENTITY = {
  kind: "identity-token",
  token: "hunter2+identity/token",
} as const;
const SECRETS = /hunter2|aHVudGVyM/u;
const scope = createRequestScope({ deadlineAtMs: Infinity });

describe("loader/oci/token", () => {
  it("asks without a credential", async () => {
    const { requests } = await ask({});

    expect(requests).toEqual([
      {
        method: "GET",
        url: new URL(
          "https://ghcr.io/token?service=s&scope=repository%3Aa%2Fb%3Apull",
        ),
        headers: { accept: "application/json" },
        body: null,
      },
    ]);
  });

  it("asks with a user name and password", async () => {
    const { requests } = await ask({ credential: BASIC });

    const authorization = `Basic ${Buffer.from("hunter2-user:hunter2:pässword").toString("base64")}`;
    expect(requests).toMatchObject([
      { method: "GET", headers: { authorization }, body: null },
    ]);
    expect(requests[0]?.url.href).not.toMatch(SECRETS);
  });

  it("asks with an identity token", async () => {
    const { requests } = await ask({ credential: IDENTITY });

    expect(requests).toMatchObject([
      {
        method: "POST",
        url: new URL("https://ghcr.io/token"),
        headers: {
          accept: "application/json",
          "content-type": "application/x-www-form-urlencoded",
        },
      },
    ]);
    expect(requests[0]?.headers).not.toHaveProperty("authorization");
    expect(formOf(requests[0])).toEqual({
      grant_type: "refresh_token",
      client_id: "function-wasm",
      service: "s",
      scope: "repository:a/b:pull",
      refresh_token: "hunter2+identity/token",
    });
  });

  it.each([
    {
      name: "[C04] keeps the realm's query, and encodes",
      realm: "https://h/token?x=1&y=a b&z",
      service: "s&scope=*#",
      scope: "repository:a/b:pull,push x+y",
      want: "?x=1&y=a%20b&z&service=s%26scope%3D*%23&scope=repository%3Aa%2Fb%3Apull%2Cpush%20x%2By",
    },
    {
      name: "begins a query",
      realm: "https://h/token?",
      service: "s",
      scope: "x",
      want: "?service=s&scope=x",
    },
    {
      name: "names no service when the challenge does not",
      realm: "https://h/token",
      service: null,
      scope: "x",
      want: "?scope=x",
    },
    {
      name: "survives what cannot be encoded",
      realm: "https://h/token",
      service: "\ud800é",
      scope: "x",
      want: "?service=%EF%BF%BD%C3%A9&scope=x",
    },
  ])("$name", async ({ realm, service, scope: asked, want }) => {
    const { requests } = await ask({
      realm: new URL(realm),
      service,
      scope: asked,
    });

    expect(requests[0]?.url.search).toBe(want);
  });

  it.each([
    { name: "token", answer: { token: "hunter2" }, want: 54_000 },
    {
      name: "[C05] access_token",
      answer: { access_token: "hunter2" },
      want: 54_000,
    },
    {
      name: "token before access_token",
      answer: { token: "hunter2", access_token: "hunter2-other" },
      want: 54_000,
    },
    {
      name: "access_token when token is empty",
      answer: { token: "", access_token: "hunter2" },
      want: 54_000,
    },
    {
      name: "a life",
      answer: { token: "hunter2", expires_in: 300 },
      want: 270_000,
    },
    {
      name: "[C05] a life as text",
      answer: { token: "hunter2", expires_in: "300" },
      want: 270_000,
    },
    {
      name: "a life of 0",
      answer: { token: "hunter2", expires_in: 0 },
      want: 54_000,
    },
    {
      name: "a life below 0",
      answer: { token: "hunter2", expires_in: -5 },
      want: 54_000,
    },
    {
      name: "a life that is no number",
      answer: { token: "hunter2", expires_in: "soon" },
      want: 54_000,
    },
    {
      name: "a life of a type of its own",
      answer: { token: "hunter2", expires_in: [300] },
      want: 54_000,
    },
    {
      name: "a life of an hour and a bit",
      answer: { token: "hunter2", expires_in: 4001 },
      want: 3_600_000,
    },
    {
      name: "a life for ever",
      answer: { token: "hunter2", expires_in: 1e300 },
      want: 3_600_000,
    },
  ])("takes an answer with $name", async ({ answer, want }) => {
    const { result } = await ask({}, json(answer));

    expect(await result).toEqual({ value: "hunter2", usableForMs: want });
  });

  it("takes a life beyond all numbers for none", async () => {
    const { result } = await ask(
      {},
      { status: 200, body: `{"token":"hunter2","expires_in":1e999}` },
    );

    expect(await result).toMatchObject({ usableForMs: 54_000 });
  });

  it("takes a token of 16 KiB", async () => {
    const { result } = await ask(
      {},
      json({ token: "hunter2".padEnd(16_384, "t") }),
    );

    expect(await result).toMatchObject({
      value: "hunter2".padEnd(16_384, "t"),
    });
  });

  it.each([
    { name: "no JSON", body: "<html>" },
    { name: "JSON cut off", body: `{"token":"hunter2"` },
    { name: "no object", body: `"token"` },
    { name: "null", body: "null" },
    { name: "no token", body: `{"tokens":"hunter2"}` },
    { name: "a number", body: `{"token":7}` },
    { name: "an empty token", body: `{"token":""}` },
    {
      name: "a line break in the token",
      body: `{"token":"hunter2\\r\\nx: y"}`,
    },
    { name: "a blank in the token", body: `{"token":"a b"}` },
    { name: "a token that is not ASCII", body: `{"token":"é"}` },
    {
      name: "a token above 16 KiB",
      body: `{"token":"${"hunter2".padEnd(16_385, "t")}"}`,
    },
    {
      name: "a token that is inherited",
      body: `{"__proto__":{"token":"hunter2"}}`,
    },
  ])("refuses an answer with $name", async ({ body }) => {
    const { result, unfinished } = await ask({}, { status: 200, body });

    expect(await failureOf(result)).toEqual({
      code: "answer-invalid",
      message:
        'ghcr.io: the answer to the request for a token holds none, expected JSON with "token" or "access_token"',
    });
    expect(unfinished()).toBe(0);
  });

  it("refuses an answer above 64 KiB", async () => {
    const body = `${" ".repeat(65_536)}{"token":"hunter2"}`;
    const { result, unfinished } = await ask({}, { status: 200, body });

    expect(await failureOf(result)).toEqual({
      code: "answer-too-large",
      message:
        "ghcr.io: the answer to the request for a token is too large, expected at most 65536 bytes, got more",
    });
    expect(unfinished()).toBe(0);
  });

  const DENIED = `{"errors":[{"code":"DENIED","message":"not yours"}]}`;
  it.each([
    {
      status: 401,
      credential: null,
      code: "registry-auth-failed",
      message:
        "ghcr.io: the registry wants a credential and there is none for it: DENIED: not yours",
    },
    {
      status: 401,
      credential: BASIC,
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential: DENIED: not yours",
    },
    {
      status: 403,
      credential: BASIC,
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential: DENIED: not yours",
    },
    {
      status: 400,
      credential: IDENTITY,
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential: DENIED: not yours",
    },
    ...[408, 429, 500, 503].map((status) => ({
      status,
      credential: BASIC,
      code: "registry-unreachable",
      message: `ghcr.io answers ${status} to the request for a token: DENIED: not yours`,
    })),
    ...[204, 307, 404, 405].map((status) => ({
      status,
      credential: BASIC,
      code: "registry-refused",
      message: `ghcr.io answers ${status} to the request for a token: DENIED: not yours`,
    })),
  ])(
    "makes $code of $status",
    async ({ status, credential, code, message }) => {
      const { result, unfinished } = await ask(
        { credential },
        { status, body: DENIED },
      );

      expect(await failureOf(result)).toEqual({ code, message });
      expect(unfinished()).toBe(0);
    },
  );

  it.each([
    { name: "the token server is a stranger", mayQuote: false, url: undefined },
    {
      name: "a redirect led elsewhere",
      mayQuote: true,
      url: "https://inside.example/",
    },
  ])("quotes nothing when $name", async ({ mayQuote, url }) => {
    const { result, unfinished } = await ask(
      { mayQuote },
      { status: 403, body: DENIED, ...(url === undefined ? {} : { url }) },
    );

    expect(await failureOf(result)).toEqual({
      code: "registry-auth-failed",
      message:
        "ghcr.io: the registry wants a credential and there is none for it",
    });
    expect(unfinished()).toBe(0);
  });

  it.each([
    { name: "a user name", credential: BASIC, echo: BASIC.username },
    { name: "a password", credential: BASIC, echo: BASIC.password },
    {
      name: "a header",
      credential: BASIC,
      echo: Buffer.from(`${BASIC.username}:${BASIC.password}`).toString(
        "base64",
      ),
    },
    { name: "an identity token", credential: IDENTITY, echo: IDENTITY.token },
  ])("does not quote an answer with $name", async ({ credential, echo }) => {
    const { result } = await ask(
      { credential },
      { status: 400, body: `Bad header: ${echo}` },
    );

    expect(await failureOf(result)).toEqual({
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential",
    });
  });
});

async function ask(
  request: Partial<TokenRequest>,
  answer: ScriptedAnswer = json({ token: "hunter2" }),
) {
  const { send, requests, unfinished } = scriptedSend(() => answer);
  const result = requestToken(
    send,
    {
      registry: "ghcr.io",
      realm: new URL("https://ghcr.io/token"),
      service: "s",
      scope: "repository:a/b:pull",
      credential: null,
      mayQuote: true,
      ...request,
    },
    scope,
  );
  await Promise.allSettled([result]);
  return { result, requests, unfinished };
}

function json(value: unknown): ScriptedAnswer {
  return { status: 200, body: JSON.stringify(value) };
}

function formOf(request: HttpRequest | undefined): Record<string, string> {
  const body = request?.body;
  const text = body?.kind === "bytes" ? Buffer.from(body.bytes).toString() : "";
  return Object.fromEntries(new URLSearchParams(text));
}

/** A failure that says nothing secret. */
async function failureOf(result: Promise<Token>) {
  const error: unknown = await result.catch((thrown: unknown) => thrown);
  if (!(error instanceof LoaderError)) throw new Error("it did not fail");
  expect(`${error.stack ?? ""}${String(error.cause)}`).not.toMatch(SECRETS);
  return { code: error.code, message: error.message };
}
