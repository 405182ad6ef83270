import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach, describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import type { HttpRequest } from "../../../../src/loader/http/transport.js";
import type { Access } from "../../../../src/loader/oci/access.js";
import {
  type Authorized,
  type Authorizer,
  createAuthorizer,
} from "../../../../src/loader/oci/authorizer.js";
import type { Credential } from "../../../../src/loader/oci/credential.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { nodeSend } from "./node-send.js";
import {
  type ScriptedAnswer,
  scriptedSend,
  type ScriptedSend,
} from "./scripted-send.js";

const BASIC = {
  kind: "basic",
  username: "hunter2-user",
  password: "hunter2-password",
} as const;
const BASIC_HEADER = `Basic ${Buffer.from("hunter2-user:hunter2-password").toString("base64")}`;
const IDENTITY = { kind: "identity-token", token: "hunter2-identity" } as const;
const REGISTRY_TOKEN = {
  kind: "registry-token",
  token: "hunter2-registry-token",
} as const;
const SECRETS = /hunter2|aHVudGVyM/u;

const SCOPE = "repository:acme/fn:pull";
const BEARER = `Bearer realm="https://ghcr.io/token",service="ghcr.io",scope="${SCOPE}"`;
const OK: ScriptedAnswer = { status: 200 };

let nowMs: number;

describe("loader/oci/authorizer", () => {
  beforeEach(() => {
    nowMs = 0;
  });

  it("[W2] shows no credential to a registry that does not ask", async () => {
    const { authorizer, seen } = setUp(() => OK);

    const { usedCredential } = await get(authorizer, { credential: BASIC });

    expect(usedCredential).toBe(false);
    expect(seen()).toEqual(["GET ghcr.io/v2/ -"]);
  });

  it("gets a token without a credential, and uses it until it expires", async () => {
    const { authorizer, seen } = setUp(bearerRegistry());

    const first = await get(authorizer);
    nowMs = 53_999;
    await get(authorizer);
    nowMs = 54_000;
    await get(authorizer);

    expect(first).toMatchObject({ usedCredential: false });
    expect(first.response.status).toBe(200);
    expect(seen()).toEqual([
      "GET ghcr.io/v2/ -",
      "GET ghcr.io/token -",
      "GET ghcr.io/v2/ Bearer hunter2-t1",
      "GET ghcr.io/v2/ Bearer hunter2-t1",
      "GET ghcr.io/v2/ -",
      "GET ghcr.io/token -",
      "GET ghcr.io/v2/ Bearer hunter2-t2",
    ]);
  });

  it("gets a token with a credential, and says so whenever it is used", async () => {
    const { authorizer, seen } = setUp(bearerRegistry());

    const first = await get(authorizer, { credential: BASIC });
    const second = await get(authorizer, { credential: BASIC });

    expect(first.usedCredential).toBe(true);
    expect(second.usedCredential).toBe(true);
    expect(seen()).toEqual([
      "GET ghcr.io/v2/ -",
      `GET ghcr.io/token ${BASIC_HEADER}`,
      "GET ghcr.io/v2/ Bearer hunter2-t1",
      "GET ghcr.io/v2/ Bearer hunter2-t1",
    ]);
  });

  it("gets a token with an identity token", async () => {
    const { authorizer, seen } = setUp(bearerRegistry());

    const { usedCredential } = await get(authorizer, { credential: IDENTITY });

    expect(usedCredential).toBe(true);
    expect(seen()).toEqual([
      "GET ghcr.io/v2/ -",
      "POST ghcr.io/token -",
      "GET ghcr.io/v2/ Bearer hunter2-t1",
    ]);
  });

  it("sends the request as it was, with the authorization added", async () => {
    const { authorizer, requests } = setUp(bearerRegistry());
    const request = {
      method: "PUT",
      url: new URL("https://ghcr.io/v2/x?y=z"),
      headers: { accept: "a/b" },
      body: { kind: "bytes", bytes: Buffer.from("b") },
    } as const;

    await authorizer.send(request, accessOf({}), caller());

    expect(requests[0]).toEqual(request);
    expect(requests[2]).toEqual({
      ...request,
      headers: { accept: "a/b", authorization: "Bearer hunter2-t1" },
    });
  });

  it.each([
    {
      name: "in one header",
      challenges: [`Basic realm="x", ${BEARER.replace("Bearer", "bearer")}`],
    },
    { name: "in two headers", challenges: [`Basic realm="x"`, BEARER] },
  ])("[C03] prefers Bearer to Basic $name", async ({ challenges }) => {
    const { authorizer, seen } = setUp(bearerRegistry(...challenges));

    await get(authorizer, { credential: BASIC });

    expect(seen()).toContain(`GET ghcr.io/token ${BASIC_HEADER}`);
    expect(seen().at(-1)).toBe("GET ghcr.io/v2/ Bearer hunter2-t1");
  });

  it.each([
    {
      name: "[C02] what the registry asks for, whole",
      challenged: "repository:acme/fn:pull,push repository:a/b:pull",
      actions: "pull",
      want: "repository:acme/fn:pull,push repository:a/b:pull",
    },
    {
      name: "what the request is for, when the registry asks for nothing",
      challenged: "",
      actions: "pull,push",
      want: "repository:acme/fn:pull,push",
    },
    {
      name: "no less than what the request is for",
      challenged: SCOPE,
      actions: "pull,push",
      want: "repository:acme/fn:pull,push",
    },
  ] as const)("asks for $name", async ({ challenged, actions, want }) => {
    const challenge = BEARER.replace(SCOPE, challenged);
    const { authorizer, requests } = setUp(bearerRegistry(challenge));

    await get(authorizer, { actions });

    expect(requests[1]?.url.searchParams.get("scope")).toBe(want);
    expect(requests[1]?.url.searchParams.get("service")).toBe("ghcr.io");
  });

  it("shows a user name and password to a registry that asks, and from then on", async () => {
    const { authorizer, seen } = setUp(basicRegistry());

    const first = await get(authorizer, { credential: BASIC });
    await get(authorizer, { credential: BASIC });

    expect(first.usedCredential).toBe(true);
    expect(seen()).toEqual([
      "GET ghcr.io/v2/ -",
      `GET ghcr.io/v2/ ${BASIC_HEADER}`,
      `GET ghcr.io/v2/ ${BASIC_HEADER}`,
    ]);
  });

  it("takes no Bearer challenge that does not say where tokens are", async () => {
    const { authorizer, seen } = setUp(({ headers }) =>
      headers["authorization"] === BASIC_HEADER
        ? OK
        : unauthorized(`Bearer service="s", Basic`),
    );

    await get(authorizer, { credential: BASIC });

    expect(seen().at(-1)).toBe(`GET ghcr.io/v2/ ${BASIC_HEADER}`);
  });

  it.each([
    { name: "a Bearer challenge", challenges: [BEARER] },
    { name: "a Basic challenge", challenges: ["Basic"] },
    { name: "no challenge", challenges: [] },
  ])("shows a registry token as it is after $name", async ({ challenges }) => {
    const { authorizer, seen } = setUp(({ headers }) =>
      headers["authorization"] === "Bearer hunter2-registry-token"
        ? OK
        : unauthorized(...challenges),
    );

    const { usedCredential } = await get(authorizer, {
      credential: REGISTRY_TOKEN,
    });

    expect(usedCredential).toBe(true);
    expect(seen()).toEqual([
      "GET ghcr.io/v2/ -",
      "GET ghcr.io/v2/ Bearer hunter2-registry-token",
    ]);
  });

  it.each([
    { name: "another repository", other: { repository: "acme/other" } },
    { name: "other actions", other: { actions: "pull,push" } },
    { name: "nobody", other: { credential: null } },
    {
      name: "another user",
      other: { credential: { ...BASIC, username: "u" } },
    },
    {
      name: "another password",
      other: { credential: { ...BASIC, password: "p" } },
    },
    {
      name: "a user who is parted otherwise",
      other: {
        credential: {
          kind: "basic",
          username: "hunter2-userh",
          password: "unter2-password",
        },
      },
    },
  ] as const)("keeps a token from requests for $name", async ({ other }) => {
    const { authorizer, seen } = setUp(bearerRegistry());
    await get(authorizer, { credential: BASIC });

    await get(authorizer, { credential: BASIC, ...other });

    expect(seen().slice(3)).toEqual([
      "GET ghcr.io/v2/ -",
      expect.stringContaining("GET ghcr.io/token "),
      "GET ghcr.io/v2/ Bearer hunter2-t2",
    ]);
  });

  it("[C16] keeps a token from another registry", async () => {
    const { authorizer, seen } = setUp(bearerRegistry());
    await get(authorizer, { credential: BASIC });

    await authorizer.send(
      requestTo("https://other.example/v2/"),
      accessOf({ registry: "other.example" }),
      caller(),
    );

    expect(seen()[3]).toBe("GET other.example/v2/ -");
  });

  it("[C06] gets a new token when a remembered one is refused", async () => {
    let valid = 1;
    const { authorizer, seen } = setUp(
      tokenServer(
        (authorization) => authorization === `Bearer hunter2-t${valid}`,
      ),
    );
    await get(authorizer, { credential: BASIC });
    valid = 2;

    const { response } = await get(authorizer, { credential: BASIC });

    expect(response.status).toBe(200);
    expect(seen().slice(3)).toEqual([
      "GET ghcr.io/v2/ Bearer hunter2-t1",
      `GET ghcr.io/token ${BASIC_HEADER}`,
      "GET ghcr.io/v2/ Bearer hunter2-t2",
    ]);
  });

  it("[C06] stops when the new token is refused as well, and forgets it", async () => {
    let accepts = true;
    const { authorizer, seen, unfinished } = setUp(
      tokenServer((authorization) => accepts && authorization !== null),
    );
    await discarded(get(authorizer, { credential: BASIC }));
    accepts = false;

    const failure = await failureOf(get(authorizer, { credential: BASIC }));
    await failureOf(get(authorizer, { credential: BASIC }));

    expect(failure).toEqual({
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential: UNAUTHORIZED: sign in",
    });
    expect(seen().slice(3)).toEqual([
      "GET ghcr.io/v2/ Bearer hunter2-t1",
      `GET ghcr.io/token ${BASIC_HEADER}`,
      "GET ghcr.io/v2/ Bearer hunter2-t2",
      "GET ghcr.io/v2/ -",
      `GET ghcr.io/token ${BASIC_HEADER}`,
      "GET ghcr.io/v2/ Bearer hunter2-t3",
    ]);
    expect(unfinished()).toBe(0);
  });

  it("does not repeat a user name and password that were refused", async () => {
    let accepts = true;
    const { authorizer, seen, unfinished } = setUp(({ headers }) =>
      accepts && headers["authorization"] === BASIC_HEADER
        ? OK
        : unauthorized("Basic"),
    );
    await discarded(get(authorizer, { credential: BASIC }));
    accepts = false;

    const failure = await failureOf(get(authorizer, { credential: BASIC }));
    await failureOf(get(authorizer, { credential: BASIC }));

    expect(failure).toEqual({
      code: "registry-auth-failed",
      message: "ghcr.io refused the credential: UNAUTHORIZED: sign in",
    });
    expect(seen().slice(2)).toEqual([
      `GET ghcr.io/v2/ ${BASIC_HEADER}`,
      "GET ghcr.io/v2/ -",
      `GET ghcr.io/v2/ ${BASIC_HEADER}`,
    ]);
    expect(unfinished()).toBe(0);
  });

  it.each([
    {
      name: "nobody, asked for a user name and password",
      challenges: ["Basic"],
      credential: null,
      want: "ghcr.io: the registry wants a credential and there is none for it: UNAUTHORIZED: sign in",
    },
    {
      name: "nobody, whose token is refused",
      challenges: [BEARER],
      credential: null,
      want: "ghcr.io: the registry wants a credential and there is none for it: UNAUTHORIZED: sign in",
    },
    {
      name: "an identity token, where a user name and password are wanted",
      challenges: ["Basic"],
      credential: IDENTITY,
      want: "ghcr.io takes no identity token: it asks for basic",
    },
    {
      name: "a user name and password, where something else is wanted",
      challenges: ["Negotiate, NTLM"],
      credential: BASIC,
      want: "ghcr.io takes no user name and password: it asks for negotiate, ntlm",
    },
    {
      name: "a credential, where nothing is asked for",
      challenges: [],
      credential: BASIC,
      want: "ghcr.io takes no user name and password: it asks for a credential without saying which",
    },
    {
      name: "a registry token that is refused",
      challenges: [BEARER],
      credential: REGISTRY_TOKEN,
      want: "ghcr.io refused the credential: UNAUTHORIZED: sign in",
    },
  ])("refuses $name", async ({ challenges, credential, want }) => {
    const { authorizer, unfinished } = setUp(({ url }) =>
      url.pathname === "/token" ? tokenAnswer(1) : unauthorized(...challenges),
    );

    const failure = await failureOf(get(authorizer, { credential }));

    expect(failure).toEqual({ code: "registry-auth-failed", message: want });
    expect(unfinished()).toBe(0);
  });

  it.each(["", "hunter2\r\nx: y", "hunter2 é"])(
    "refuses the registry token %j, which no header can hold",
    async (token) => {
      const { authorizer, requests } = setUp(() => unauthorized());

      const failure = await failureOf(
        get(authorizer, { credential: { kind: "registry-token", token } }),
      );

      expect(failure).toEqual({
        code: "pull-credential-invalid",
        message:
          "the registry token for ghcr.io is empty or holds characters that no header can",
      });
      expect(requests).toHaveLength(1);
    },
  );

  it("does not quote a registry that repeats a token", async () => {
    const { authorizer } = setUp(({ headers, url }) =>
      url.pathname === "/token"
        ? { status: 200, body: `{"token":"hunter2-token"}` }
        : {
            ...unauthorized(BEARER),
            body: `bad ${headers["authorization"] ?? ""}`,
          },
    );

    const failure = await failureOf(get(authorizer));

    expect(failure.message).toBe(
      "ghcr.io: the registry wants a credential and there is none for it",
    );
  });

  it.each([
    {
      name: "with a credential",
      credential: BASIC,
      realm: "https://q.example",
    },
    {
      name: "with an identity token",
      credential: IDENTITY,
      realm: "https://q.example",
    },
    { name: "in the clear", credential: null, realm: "http://q.example" },
    {
      name: "on another port",
      credential: BASIC,
      realm: "https://ghcr.io:444",
    },
  ])(
    "[C01] asks no other server for a token $name",
    async ({ credential, realm }) => {
      const { authorizer, seen, unfinished } = setUp(() =>
        unauthorized(`Bearer realm="${realm}/t",service="x"`),
      );

      const failure = await failureOf(get(authorizer, { credential }));

      expect(failure).toEqual({
        code: "token-realm-refused",
        message: `ghcr.io sends for tokens to ${realm}, which is not known to be its token server (--registry-token-server)`,
      });
      expect(seen()).toEqual(["GET ghcr.io/v2/ -"]);
      expect(unfinished()).toBe(0);
    },
  );

  it("[C01] asks another server without a credential, and quotes it nowhere", async () => {
    const challenge = `Bearer realm="https://q.example/t",service="x"`;
    const { authorizer, seen } = setUp(({ url }) =>
      url.host === "q.example"
        ? { status: 403, body: "inside" }
        : unauthorized(challenge),
    );

    const failure = await failureOf(get(authorizer));

    expect(failure).toEqual({
      code: "registry-auth-failed",
      message:
        "ghcr.io: the registry wants a credential and there is none for it",
    });
    expect(seen()).toEqual(["GET ghcr.io/v2/ -", "GET q.example/t -"]);
  });

  it("[C01] shows a credential to the token server that is known to be a registry's", async () => {
    const challenge = `Bearer realm="https://auth.docker.io/token",service="registry.docker.io"`;
    const { authorizer, seen } = setUp(bearerRegistry(challenge));

    await authorizer.send(
      requestTo("https://index.docker.io/v2/"),
      accessOf({ registry: "index.docker.io", credential: BASIC }),
      caller(),
    );

    expect(seen()).toEqual([
      "GET index.docker.io/v2/ -",
      `GET auth.docker.io/token ${BASIC_HEADER}`,
      "GET index.docker.io/v2/ Bearer hunter2-t1",
    ]);
  });

  it.each([
    { name: "another host", url: "https://storage.example/upload" },
    { name: "another port", url: "https://ghcr.io:444/upload" },
    { name: "the registry in the clear", url: "http://ghcr.io/upload" },
  ])("[C07] sends nothing secret to $name", async ({ url }) => {
    const { authorizer, requests, seen, unfinished } = setUp(
      (request, index) =>
        request.url.href === url
          ? { ...unauthorized("Basic", BEARER), body: "inside" }
          : basicRegistry()(request, index),
    );
    await discarded(get(authorizer, { credential: BASIC }));

    const failure = await failureOf(
      authorizer.send(
        requestTo(url),
        accessOf({ credential: BASIC }),
        caller(),
      ),
    );

    const { host, origin } = new URL(url);
    expect(failure).toEqual({
      code: "registry-auth-failed",
      message: `${origin} wants a credential, and those for ghcr.io do not go there`,
    });
    expect(requests).toHaveLength(3);
    expect(seen()[2]).toBe(`GET ${host}/upload -`);
    expect(unfinished()).toBe(0);
  });

  it("[C07] answers no challenge of a server that a redirect led to", async () => {
    const { authorizer, seen } = setUp(() => ({
      ...unauthorized("Basic"),
      url: "https://storage.example/blob",
    }));

    const failure = await failureOf(get(authorizer, { credential: BASIC }));

    expect(failure).toEqual({
      code: "registry-auth-failed",
      message:
        "https://storage.example wants a credential, and those for ghcr.io do not go there",
    });
    expect(seen()).toEqual(["GET ghcr.io/v2/ -"]);
  });

  it.each([200, 307, 400, 403, 404, 503])(
    "gives back an answer of %d as it came",
    async (status) => {
      const { authorizer, requests, unfinished } = setUp(() => ({ status }));

      const { response } = await get(authorizer, { credential: BASIC });

      expect(response.status).toBe(status);
      expect(requests).toHaveLength(1);
      expect(unfinished()).toBe(1);
    },
  );

  it("shares one request for a token, which outlives those who go away", async () => {
    const { promise, resolve } = deferred();
    const { authorizer, scopes, seen } = setUp(
      bearerRegistry(BEARER),
      () => promise,
    );
    const gone = caller();
    const leaving = get(authorizer, {}, gone);
    const staying = [get(authorizer), get(authorizer)];
    await turns();

    gone.cancel();

    expect(await failureOf(leaving)).toEqual({
      code: "resolve-cancelled",
      message: "the request ended while it waited for a token from ghcr.io",
    });
    resolve();
    const answers = await Promise.all(staying);
    expect(answers.map(({ response }) => response.status)).toEqual([200, 200]);
    expect(seen().filter((line) => line.includes("/token"))).toHaveLength(1);
    const tokenScope = scopes[seen().indexOf("GET ghcr.io/token -")];
    expect(tokenScope).toMatchObject({
      deadlineAtMs: 10_000,
      cancelled: false,
    });
  });

  it("takes the token that another request got while this one was on its way", async () => {
    const late = deferred();
    const { authorizer, seen } = setUp(bearerRegistry(), undefined, (index) =>
      index === 0 ? late.promise : Promise.resolve(),
    );
    const slow = get(authorizer);
    await get(authorizer);

    late.resolve();
    await slow;

    expect(seen().filter((line) => line.includes("/token"))).toHaveLength(1);
  });

  it("asks again when asking for a token has failed", async () => {
    let tries = 0;
    const registry = bearerRegistry();
    const { authorizer } = setUp((request, index) =>
      request.url.pathname === "/token" && tries++ === 0
        ? { status: 503 }
        : registry(request, index),
    );

    const failure = await failureOf(get(authorizer));
    const { response } = await get(authorizer);

    expect(failure).toEqual({
      code: "registry-unreachable",
      message: "ghcr.io answers 503 to the request for a token",
    });
    expect(response.status).toBe(200);
  });

  it("signs in to a real server", async () => {
    await using server = await realRegistry();
    const authorizer = createAuthorizer(nodeSend, {
      clock: { nowMs: () => 0, monotonicMs: () => 0 },
      allowsPlainHttp: (authority) => authority === server.authority,
    });
    const access = accessOf({
      registry: server.authority,
      credential: BASIC,
    });

    const answers = await Promise.all(
      [1, 2, 3].map(async (i) => {
        const request = requestTo(`http://${server.authority}/v2/${i}`);
        const answer = await authorizer.send(request, access, caller());
        await answer.response.discard();
        return [answer.response.status, answer.usedCredential];
      }),
    );

    expect(answers).toEqual([
      [200, true],
      [200, true],
      [200, true],
    ]);
    expect(server.seen.filter((line) => line.includes("/t?"))).toEqual([
      `/t?x=1&y=a%20b&service=s&scope=repository%3Aacme%2Ffn%3Apull ${BASIC_HEADER}`,
    ]);
  });
});

/**
 * @param tokenReady what the token server waits for
 * @param ready what the answer to a request waits for
 */
function setUp(
  answer: Parameters<typeof scriptedSend>[0],
  tokenReady: () => Promise<void> = () => Promise.resolve(),
  ready: (index: number) => Promise<void> = () => Promise.resolve(),
): ScriptedSend & { authorizer: Authorizer; seen: () => string[] } {
  const script = scriptedSend(async (request, index) => {
    const answered = await answer(request, index);
    if (request.url.pathname === "/token") await tokenReady();
    await ready(index);
    return answered;
  });
  const authorizer = createAuthorizer(script.send, {
    clock: { nowMs: () => 0, monotonicMs: () => nowMs },
    allowsPlainHttp: () => false,
  });
  return { ...script, authorizer, seen: () => script.requests.map(lineOf) };
}

function lineOf({ headers, method, url }: HttpRequest): string {
  return `${method} ${url.host}${url.pathname} ${headers["authorization"] ?? "-"}`;
}

/** Takes every token it gave. */
function bearerRegistry(...challenges: readonly string[]) {
  return tokenServer((authorization) => authorization !== null, challenges);
}

/** Gives out `hunter2-t1`, `hunter2-t2` and so on, to anybody. */
function tokenServer(
  accepts: (authorization: string | null) => boolean,
  challenges: readonly string[] = [],
): (request: HttpRequest, index: number) => ScriptedAnswer {
  let issued = 0;
  return ({ headers, url }) => {
    if (url.pathname === "/token") return tokenAnswer(++issued);
    return accepts(headers["authorization"] ?? null)
      ? OK
      : unauthorized(...(challenges.length === 0 ? [BEARER] : challenges));
  };
}

function basicRegistry(): (
  request: HttpRequest,
  index: number,
) => ScriptedAnswer {
  return ({ headers }) =>
    headers["authorization"] === BASIC_HEADER
      ? OK
      : unauthorized(`Basic realm="x"`);
}

function tokenAnswer(issued: number): ScriptedAnswer {
  return { status: 200, body: JSON.stringify({ token: `hunter2-t${issued}` }) };
}

function unauthorized(...challenges: readonly string[]): ScriptedAnswer {
  return {
    status: 401,
    headers: { "www-authenticate": challenges },
    body: `{"errors":[{"code":"UNAUTHORIZED","message":"sign in"}]}`,
  };
}

function accessOf(access: Partial<Access>): Access {
  return {
    registry: "ghcr.io",
    repository: "acme/fn",
    actions: "pull",
    credential: null,
    ...access,
  };
}

function get(
  authorizer: Authorizer,
  access: Partial<Access> & { credential?: Credential | null } = {},
  scope = caller(),
): Promise<Authorized> {
  const request = requestTo("https://ghcr.io/v2/");
  return authorizer.send(request, accessOf(access), scope);
}

function requestTo(url: string): HttpRequest {
  return { method: "GET", url: new URL(url), headers: {}, body: null };
}

function caller() {
  return createRequestScope({ deadlineAtMs: Infinity });
}

async function discarded(answer: Promise<Authorized>): Promise<void> {
  await (await answer).response.discard();
}

/** A failure that says nothing secret. */
async function failureOf(answer: Promise<Authorized>) {
  const error: unknown = await answer.catch((thrown: unknown) => thrown);
  if (!(error instanceof LoaderError)) throw new Error("it did not fail");
  expect(`${error.stack ?? ""}${String(error.cause)}`).not.toMatch(SECRETS);
  return { code: error.code, message: error.message };
}

function deferred() {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

/** Lets everything go on that waits for nothing. */
async function turns(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}

/** Two challenges in two header lines, a realm with a query, tokens from the same port. */
async function realRegistry() {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    const { authorization } = request.headers;
    seen.push(`${request.url ?? ""} ${authorization ?? "-"}`);
    if (request.url?.startsWith("/t?") === true) {
      response.end(`{"access_token":"hunter2-real"}`);
    } else if (authorization === "Bearer hunter2-real") {
      response.end();
    } else {
      const realm = `http://${authority}/t?x=1&y=a b`;
      response.writeHead(401, [
        ["www-authenticate", `Basic realm="x"`],
        ["www-authenticate", `Bearer realm="${realm}",service=s`],
      ]);
      response.end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const authority = `127.0.0.1:${portOf(server.address())}`;
  return {
    authority,
    seen,
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === "string")
    throw new Error("no port");
  return address.port;
}
