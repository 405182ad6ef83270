import { inspect } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { tagged } from "./loading.js";
import {
  auth,
  createRig,
  failureOf,
  filesIn,
  pull,
  regcred,
  type Rig,
  WASM,
} from "./pulling.js";

const LOGIN = { username: "u", password: "hunter2:w" };

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

/** Publishes a module as `a/b:v1`. */
function publicModule() {
  registry.addModule("a/b", { wasm: WASM, manifest: "{}", tag: "v1" });
  return tagged(`${registry.authority}/a/b:v1`);
}

function privateModule() {
  return { ...publicModule(), credentials: "regcred" };
}

describe("loader/registry-secrets: what is said", () => {
  it.each([
    {
      name: "no such tag",
      answer: {
        status: 404,
        body: '{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown","detail":{"Tag":"v1"}}]}',
      },
      code: "module-not-found",
      want: "HOST: HTTP 404 Not Found: MANIFEST_UNKNOWN: manifest unknown",
    },
    {
      name: "no access",
      answer: {
        status: 403,
        body: '{"errors":[{"code":"DENIED","message":"requested access\\nto the resource is denied"}]}',
      },
      code: "registry-auth-failed",
      want: "HOST: HTTP 403 Forbidden: DENIED: requested access to the resource is denied",
    },
    {
      name: "no login",
      answer: {
        status: 401,
        body: '{"errors":[{"code":"UNAUTHORIZED","message":"login"}]}',
      },
      code: "registry-auth-failed",
      want: "HOST: the registry wants a credential and there is none for it: UNAUTHORIZED: login",
    },
    {
      name: "none that are no registry's",
      answer: { status: 410, body: 'moved\r\n"to" \u202e elsewhere' },
      code: "registry-refused",
      want: "HOST: HTTP 410 Gone",
    },
  ])("[W5] tells the registry's own words: $name", async (row) => {
    registry.intercept(() => row.answer);

    const error = await failureOf(pull(rig.loader(), publicModule()));

    expect(error.code).toBe(row.code);
    expect(error.message).toBe(
      `cannot resolve module: module OCI ${registry.authority}/a/b:v1: ${row.want.replace("HOST", registry.authority)}`,
    );
  });

  it.each([
    { status: 403, want: "HTTP 403 Forbidden" },
    { status: 404, want: "HTTP 404 Not Found" },
    { status: 418, want: "HTTP 418" },
  ])(
    "tells nothing of what a redirect's target says with $status",
    async ({ status, want }) => {
      const internal = await rig.registry();
      internal.intercept(() => ({
        status,
        headers: { "content-type": "application/json" },
        body: '{"errors":[{"code":"INTERNAL","message":"the-crown-hunter2"}]}',
      }));
      const sendOn = (part: string) =>
        registry.intercept(({ method, path: asks }) =>
          method === "GET" && asks.includes(part)
            ? {
                status: 307,
                headers: { location: `${internal.url}/x?sig=hunter2-sig` },
              }
            : "pass",
        );

      sendOn("/blobs/");
      const ofBlob = await failureOf(pull(rig.loader(), publicModule()));
      sendOn("/manifests/");
      const ofManifest = await failureOf(pull(rig.loader(), publicModule()));

      const sentOn = `${registry.authority} sent on to ${internal.authority}: ${want}`;
      for (const error of [ofBlob, ofManifest]) {
        expect(error.message.endsWith(`: ${sentOn}`), error.message).toBe(true);
        expectNothingOf(["crown", "INTERNAL", "hunter2-sig"], error);
      }
    },
  );

  it("tells nothing of a redirect's target that wants a credential", async () => {
    const internal = await rig.registry();
    internal.intercept(() => ({
      status: 401,
      headers: { "www-authenticate": 'Bearer realm="https://the.crown/t"' },
      body: "the-crown-hunter2",
    }));
    const source = privateModule();
    registry.requireBasic(LOGIN);
    registry.intercept(({ method, path: asks, hasAuthorization }) =>
      method === "GET" && hasAuthorization && asks.includes("/blobs/")
        ? {
            status: 307,
            headers: { location: `${internal.url}/x?sig=hunter2` },
          }
        : "pass",
    );
    const credentialOf = regcred({ [registry.authority]: LOGIN });

    const error = await failureOf(pull(rig.loader(), source, credentialOf));

    expect(error.message).toContain(
      `: ${internal.url} wants a credential, and those for ${registry.authority} do not go there`,
    );
    expectNothingOf(["crown"], error);
    expect(internal.requests.map((each) => each.hasAuthorization)).toEqual([
      false,
    ]);
  });

  it.each([
    { name: "text", body: "the-crown-hunter2" },
    { name: "JSON", body: '{"mediaType":"the-crown-hunter2"}' },
    {
      name: "JSON with a name twice",
      body: '{"the-crown-hunter2":1,"the-crown-hunter2":2}',
    },
  ])(
    "tells nothing of $name that a redirect's target gives instead of a tag's manifest",
    async ({ body }) => {
      const internal = await rig.registry();
      internal.intercept(() => ({ status: 200, body }));
      registry.intercept(() => ({
        status: 307,
        headers: { location: `${internal.url}/x` },
      }));

      const error = await failureOf(pull(rig.loader(), publicModule()));

      expect(error.code).toBe("artifact-invalid");
      expectNothingOf(["crown"], error);
    },
  );
});

describe("loader/registry-secrets: secrets", () => {
  const SECRET = "hunter2+TOPSECRET";
  const login = { username: `user-${SECRET}`, password: `pw-${SECRET}` };
  const SECRETS = [
    SECRET,
    auth(login.username, login.password),
    auth("<token>", SECRET),
    encodeURIComponent(SECRET),
  ];

  function expectNoSecretIn(text: string): void {
    expect(SECRETS.filter((secret) => text.includes(secret))).toEqual([]);
  }

  it.each<{
    name: string;
    entry: object;
    arrange: () => void;
    isPulled?: true;
  }>([
    {
      name: "a pull that works, by Basic",
      entry: login,
      arrange: () => registry.requireBasic(login),
      isPulled: true,
    },
    {
      name: "a pull that works, by token",
      entry: { identitytoken: SECRET },
      arrange() {
        registry.intercept(({ path: asks, headers }) =>
          asks === "/token" || headers.authorization === `Bearer ${SECRET}`
            ? "pass"
            : bearer(`${registry.url}/token?key=${SECRET}`),
        );
        registry.intercept(({ path: asks }) =>
          asks === "/token"
            ? { status: 200, body: JSON.stringify({ token: SECRET }) }
            : "pass",
        );
      },
      isPulled: true,
    },
    {
      name: "a registry that repeats what it was sent",
      entry: login,
      arrange() {
        registry.intercept(({ headers }) =>
          headers.authorization === undefined
            ? basic()
            : { status: 400, body: `bad: ${headers.authorization}` },
        );
      },
    },
    {
      name: "a registry that repeats a token",
      entry: login,
      arrange() {
        registry.intercept(({ path: asks, headers }) =>
          asks === "/token"
            ? { status: 200, body: JSON.stringify({ token: SECRET }) }
            : headers.authorization === undefined
              ? bearer(`${registry.url}/token`)
              : {
                  status: 403,
                  body: `{"errors":[{"code":"DENIED","message":"${headers.authorization}"}]}`,
                },
        );
      },
    },
    {
      name: "a registry that repeats the password in a 401",
      entry: login,
      arrange() {
        registry.intercept(({ headers }) => ({
          ...basic(),
          body:
            headers.authorization === undefined
              ? ""
              : `{"errors":[{"code":"${login.password}","message":"${headers.authorization}"}]}`,
        }));
      },
    },
    {
      name: "a token server that refuses",
      entry: login,
      arrange() {
        registry.intercept(({ path: asks, headers }) =>
          asks === "/token"
            ? { status: 403, body: `no: ${headers.authorization ?? ""}` }
            : bearer(`${registry.url}/token?key=${SECRET}`),
        );
      },
    },
    {
      name: "a token server that gives no token",
      entry: { identitytoken: SECRET },
      arrange() {
        registry.intercept(({ path: asks, body }) =>
          asks === "/token"
            ? { status: 200, body }
            : bearer(`${registry.url}/token?key=${SECRET}`),
        );
      },
    },
    {
      name: "a token that is refused and repeated",
      entry: login,
      arrange() {
        registry.intercept(({ path: asks, headers }) =>
          asks === "/token"
            ? { status: 200, body: JSON.stringify({ token: SECRET }) }
            : {
                ...bearer(`${registry.url}/token`),
                body: `{"errors":[{"code":"X","message":"${headers.authorization ?? ""}"}]}`,
              },
        );
      },
    },
    {
      name: "a realm that is not the registry's",
      entry: login,
      arrange() {
        registry.intercept(() =>
          bearer(`http://127.0.0.1:1/${SECRET}?key=${SECRET}`),
        );
      },
    },
    {
      name: "a connection that breaks at every try",
      entry: login,
      arrange() {
        registry.intercept(({ hasAuthorization }) =>
          hasAuthorization ? "drop" : basic(),
        );
      },
    },
    {
      name: "a signed URL where nobody answers",
      entry: login,
      arrange: () => sendBlobsTo(`http://127.0.0.1:1/x?sig=${SECRET}`),
    },
    {
      name: "a signed URL with user info",
      entry: login,
      arrange: () => sendBlobsTo(`http://u:${SECRET}@127.0.0.1:1/x`),
    },
    {
      name: "a signed URL that leads on and on",
      entry: login,
      arrange: () => sendBlobsTo(`/x/blobs/x?sig=${SECRET}`),
    },
    {
      name: "an entry that cannot be used",
      entry: { username: `u:${SECRET}`, password: SECRET },
      arrange: () => undefined,
    },
    {
      name: "a token that no header can carry",
      entry: { registrytoken: `${SECRET}\n` },
      arrange: () => undefined,
    },
  ])("are in no message, log line or file after $name", async (row) => {
    const source = privateModule();
    row.arrange();
    const credentialOf = regcred({ [registry.authority]: row.entry });
    const loading = rig.loader();

    const pulling = pull(loading, source, credentialOf);

    if (row.isPulled) expect((await pulling).bytes).toEqual(WASM);
    else expectNoSecretIn(everythingIn(await failureOf(pulling)));
    expectNoSecretIn(inspect(loading.lines, { depth: 9 }));
    expectNoSecretIn(inspect(loading.counted));
    const files = await filesIn(rig.cacheDir);
    if (row.isPulled) expect(files.size).toBeGreaterThan(3);
    for (const [name, content] of files)
      expectNoSecretIn(`${name} ${content.toString("latin1")}`);
  });

  it("a Docker config that is no JSON is not repeated", async () => {
    const dockerConfigFile = rig.file("config.json", `{"auths": ${SECRET}`);

    const error = await failureOf(
      pull(rig.loader({ dockerConfigFile }), publicModule()),
    );

    expect(error.code).toBe("pull-credential-invalid");
    expectNoSecretIn(everythingIn(error));
    expect(registry.requests).toEqual([]);
  });

  function bearer(realm: string) {
    const value = `Bearer realm="${realm}",service="s"`;
    return { status: 401, headers: { "www-authenticate": value } };
  }

  function basic() {
    return { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } };
  }

  function sendBlobsTo(location: string): void {
    registry.intercept(({ method, path: asks }) =>
      method === "GET" && asks.includes("/blobs/")
        ? { status: 307, headers: { location } }
        : "pass",
    );
  }
});

function expectNothingOf(words: readonly string[], error: Error): void {
  const text = everythingIn(error);
  expect(words.filter((word) => text.includes(word))).toEqual([]);
}

/** Message, stack, detail and properties, of the causes as well. */
function everythingIn(error: Error): string {
  return inspect(error, { depth: 9, showHidden: true });
}
