import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LoaderOptions } from "../../../src/loader/index.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import { pinned, tagged } from "./loading.js";
import {
  asked,
  auth,
  createRig,
  failureOf,
  pull,
  regcred,
  type Rig,
  WASM,
} from "./pulling.js";

const LOGIN = { username: "u", password: "hunter2:w" };
const LOGIN_AUTH = auth(LOGIN.username, LOGIN.password);
const MANIFEST = '{"name":"greeter"}';

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

/** Publishes the module as `a/b:v1` and names it for a step with the credential `regcred`. */
function privateModule(at = registry, repository = "a/b") {
  at.addModule(repository, { wasm: WASM, manifest: MANIFEST, tag: "v1" });
  const text = `${at.authority}/${repository}:v1`;
  return tagged(text, { credentials: "regcred" });
}

function publicModule(at = registry, repository = "a/b") {
  return { ...privateModule(at, repository), credentials: null };
}

/** Answers 401 with these challenges until a token comes. */
function challenge(
  at: ScriptedRegistry,
  ...challenges: readonly string[]
): void {
  at.intercept(({ path: asks, hasAuthorization }) =>
    hasAuthorization || !asks.startsWith("/v2/")
      ? "pass"
      : { status: 401, headers: { "www-authenticate": challenges } },
  );
}

function tokenRequests(at: ScriptedRegistry) {
  return at.requests.filter((request) => request.path === "/token");
}

/** A loader whose runtime has this Docker config. */
function withDockerConfig(config: object, options?: Partial<LoaderOptions>) {
  const text = JSON.stringify(config);
  const dockerConfigFile = rig.file("config.json", text);
  return rig.loader({ dockerConfigFile, ...options });
}

describe("loader/registry-cases", () => {
  it.each([
    { who: "with a credential", credentials: "regcred" },
    { who: "with none", credentials: null },
  ])(
    "[C01] [W3] asks no token server of the registry's choice, $who",
    async ({ credentials }) => {
      const other = await rig.registry();
      challenge(registry, `Bearer realm="${other.url}/t",service="x"`);
      const source = { ...privateModule(), credentials };
      const credentialOf = regcred({ [registry.authority]: LOGIN });

      const error = await failureOf(pull(rig.loader(), source, credentialOf));

      expect(error.code).toBe("token-realm-refused");
      expect(error.message).toBe(
        `cannot resolve module: module OCI ${registry.authority}/a/b:v1: ${registry.authority} sends for tokens to ${other.url}, which is not known to be its token server (--registry-token-server)`,
      );
      expect(other.requests).toEqual([]);
      expect(asked(registry)).toEqual(["GET manifests"]);
    },
  );

  it("[C02] [W3] asks for the whole scope that a challenge names", async () => {
    const source = privateModule();
    registry.requireBearer(LOGIN);
    const scope = "repository:a/b:pull,push";
    challenge(
      registry,
      `Bearer realm="${registry.url}/token",scope="${scope}",service="s"`,
    );
    const credentialOf = regcred({ [registry.authority]: LOGIN });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
    const queries = tokenRequests(registry).map(({ query }) => [...query]);
    expect(queries).toEqual([
      [
        ["service", "s"],
        ["scope", scope],
      ],
    ]);
  });

  it.each([
    {
      name: "in one header line",
      challenges: (realm: string) => [
        `Basic realm="x", bearer realm="${realm}"`,
      ],
    },
    {
      name: "in two header lines",
      challenges: (realm: string) => [
        'Basic realm="x"',
        `BEARER realm="${realm}"`,
      ],
    },
  ])(
    "[C03] [W3] takes Bearer behind Basic, however it is written, $name",
    async ({ challenges }) => {
      const source = privateModule();
      registry.requireBearer(LOGIN);
      challenge(registry, ...challenges(`${registry.url}/token`));
      const credentialOf = regcred({ [registry.authority]: LOGIN });

      const { bytes } = await pull(rig.loader(), source, credentialOf);

      expect(bytes).toEqual(WASM);
      expect(tokenRequests(registry)).toHaveLength(1);
    },
  );

  it("[C04] keeps the query of a realm and encodes what it adds", async () => {
    const source = privateModule();
    registry.requireBearer(null);
    challenge(
      registry,
      `Bearer realm="${registry.url}/token?x=1&y=a b",service="s&x=2?+"`,
    );
    const credentialOf = regcred({ [registry.authority]: LOGIN });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
    expect(tokenRequests(registry).map(({ query }) => [...query])).toEqual([
      [
        ["x", "1"],
        ["y", "a b"],
        ["service", "s&x=2?+"],
        ["scope", "repository:a/b:pull"],
      ],
    ]);
  });

  it.each([
    { answer: { access_token: "hunter2" }, usableS: 54 },
    { answer: { token: "hunter2", expires_in: 0 }, usableS: 54 },
    { answer: { token: "hunter2", expires_in: "300" }, usableS: 270 },
    {
      answer: { token: "", access_token: "hunter2", expires_in: 300 },
      usableS: 270,
    },
  ])(
    "[C05] uses the token of $answer for $usableS s",
    async ({ answer, usableS }) => {
      const source = publicModule();
      challenge(registry, `Bearer realm="${registry.url}/token"`);
      registry.intercept(({ path: asks, headers }) => {
        if (asks === "/token")
          return { status: 200, body: JSON.stringify(answer) };
        if (headers.authorization === undefined) return "pass";
        expect(headers.authorization).toBe("Bearer hunter2");
        return "pass";
      });
      const loading = rig.loader();

      await pull(loading, source);
      expect(tokenRequests(registry)).toHaveLength(1);
      loading.advance((usableS - 10) * 1000);
      await pull(loading, source);
      expect(tokenRequests(registry)).toHaveLength(1);
      loading.advance(11 * 1000);
      await pull(loading, source);
      expect(tokenRequests(registry)).toHaveLength(2);
    },
  );

  it("[C06] [W5] gets another token each time one is refused", async () => {
    const source = privateModule();
    const tokens = registry.requireBearer(LOGIN, { tokenTtlSeconds: 3600 });
    const blobGets: string[] = [];
    registry.intercept(({ method, path: asks }) => {
      if (method === "GET" && asks.includes("/blobs/")) {
        // Between the manifest and each layer.
        if (!blobGets.includes(asks)) tokens.revoke();
        blobGets.push(asks);
      }
      return "pass";
    });
    const credentialOf = regcred({ [registry.authority]: LOGIN });

    const { bytes, manifest } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
    expect(manifest).toBe(MANIFEST);
    expect(blobGets).toHaveLength(4);
    expect(tokenRequests(registry)).toHaveLength(3);
  });

  it("[C06] stops when the new token is refused, too", async () => {
    const source = privateModule();
    registry.requireBearer(LOGIN);
    registry.intercept(({ method, path: asks }) =>
      method === "GET" && asks.includes("/blobs/")
        ? {
            status: 401,
            headers: {
              "www-authenticate": `Bearer realm="${registry.url}/token",error="invalid_token"`,
            },
          }
        : "pass",
    );
    const credentialOf = regcred({ [registry.authority]: LOGIN });

    const error = await failureOf(pull(rig.loader(), source, credentialOf));

    expect(error.code).toBe("registry-auth-failed");
    expect(error.message).toContain(
      `: ${registry.authority} refused the credential`,
    );
    expect(asked(registry).filter((each) => each === "GET blobs")).toEqual([
      "GET blobs",
      "GET blobs",
    ]);
  });

  it.each([
    { name: "port", host: "127.0.0.1" },
    { name: "host", host: "localhost" },
  ])(
    "[C07] shows the credential to no other $name that a blob is at",
    async ({ host }) => {
      const storage = await rig.registry();
      storage.intercept(({ hasAuthorization }) =>
        hasAuthorization ? { status: 400 } : "pass",
      );
      privateModule(storage);
      const source = privateModule();
      registry.requireBasic(LOGIN);
      const base = storage.url.replace("127.0.0.1", host);
      registry.intercept(({ path: asks, hasAuthorization }) =>
        hasAuthorization && asks.includes("/blobs/")
          ? {
              status: 307,
              headers: { location: `${base}${asks}?sig=hunter2%2Fx%3D%3D` },
            }
          : "pass",
      );
      const credentialOf = regcred({ [registry.authority]: LOGIN });

      const { bytes, manifest } = await pull(
        rig.loader(),
        source,
        credentialOf,
      );

      expect(bytes).toEqual(WASM);
      expect(manifest).toBe(MANIFEST);
      expect(asked(storage)).toEqual(["GET blobs", "GET blobs"]);
      for (const { query, headers } of storage.requests) {
        expect(query.get("sig")).toBe("hunter2/x==");
        expect(Object.keys(headers)).not.toContain("cookie");
      }
    },
  );

  it("[C08] follows no redirect in a circle, nor more than five", async () => {
    const source = publicModule();
    registry.intercept(({ method, path: asks }) => {
      const hop = /^\/hop(?<hop>[0-9]+)$/u.exec(asks)?.groups?.["hop"];
      return method === "GET" && (hop !== undefined || asks.includes("/blobs/"))
        ? {
            status: 302,
            headers: { location: `/hop${Number(hop ?? 0) + 1}?sig=hunter2` },
          }
        : "pass";
    });
    const circle = publicModule(registry, "in/circles");
    registry.intercept(({ method, path: asks }) =>
      method === "GET" && asks.startsWith("/v2/in/circles/blobs/")
        ? { status: 301, headers: { location: asks } }
        : "pass",
    );

    const chained = await failureOf(pull(rig.loader(), source));
    const circled = await failureOf(pull(rig.loader(), circle));

    expect(chained.code).toBe("redirect-refused");
    expect(chained.message).toMatch(
      new RegExp(
        `: ${registry.authority}: more than 5 redirects, the last one to ${registry.url}/hop6$`,
      ),
    );
    expect(circled.code).toBe("redirect-refused");
    expect(circled.message).toContain("more than 5 redirects, the last one to");
    const gets = registry.requests.filter(
      ({ method, path: asks }) =>
        method === "GET" && !asks.includes("/manifests/"),
    );
    expect(gets).toHaveLength(12);
  });

  it.each([
    {
      location: "http://storage.test/blob",
      want: "storage.test: http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only",
    },
    { location: "file:///etc/passwd", want: "HOST: redirect to file:" },
    { location: "gopher://storage.test/", want: "HOST: redirect to gopher:" },
    {
      location: "http://u:hunter2@127.0.0.1:1/blob",
      want: "HOST: redirect with a user name or password to http://127.0.0.1:1/blob",
    },
    {
      location: "http://[::ffff:7f00:1]:1/blob",
      want: 'HOST: redirect to http://[::ffff:7f00:1]:1/blob: host "[::ffff:7f00:1]" is an IPv6 address with an IPv4 address inside, write the IPv4 address',
    },
  ])("[C08] names the hop that is refused: $location", async (row) => {
    const source = publicModule();
    registry.intercept(({ method, path: asks }) =>
      method === "GET" && asks.includes("/blobs/")
        ? { status: 302, headers: { location: row.location } }
        : "pass",
    );

    const { message } = await failureOf(pull(rig.loader(), source));

    const want = row.want.replace("HOST", registry.authority);
    expect(message.endsWith(`: ${want}`), message).toBe(true);
  });

  it.each(["the runtime's", "a step's"])(
    "[C09] an entry without a secret breaks no other one of %s Docker config",
    async (whose) => {
      const open = await rig.registry();
      registry.requireBasic(LOGIN);
      const auths = {
        [open.authority]: {},
        [registry.authority]: { auth: LOGIN_AUTH },
      };
      const isStep = whose === "a step's";
      const loading = isStep ? rig.loader() : withDockerConfig({ auths });
      const sourceOf = isStep ? privateModule : publicModule;

      const there = await pull(loading, sourceOf(), regcred(auths));
      expect(loading.lines.filter(({ level }) => level === "warn")).toEqual([]);
      const here = await pull(loading, sourceOf(open), regcred(auths));

      expect([there.bytes, here.bytes]).toEqual([WASM, WASM]);
      const warnings = loading.lines.filter(({ level }) => level === "warn");
      expect(warnings).toHaveLength(1);
      expect(warnings[0]?.message).toMatch(
        /has no secret(?: for its registry)?, pulling anonymously$/u,
      );
      expect(Object.values(warnings[0]?.fields ?? {})).toContain(
        open.authority,
      );
    },
  );

  it.each([
    "http://HOST",
    "https://HOST",
    "https://HOST/",
    "https://HOST/v1/",
    "https://HOST/v2/",
    "http://HOST/a",
  ])("[C10] [W7] a key can be a URL: %s", async (key) => {
    const source = privateModule();
    registry.requireBasic(LOGIN);
    const url = key.replace("HOST", registry.authority);
    const credentialOf = regcred({ [url]: { auth: LOGIN_AUTH } });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
  });

  it("[C10] [C16] a key that is a URL is for its own host only", async () => {
    const urls = ["https://index.docker.io/v1/", "https://quay.io/v1/"];
    const keys = [...urls, "http://reg:5000"];
    const credentialOf = regcred(
      Object.fromEntries(keys.map((key) => [key, LOGIN])),
    );

    const error = await failureOf(
      pull(rig.loader(), privateModule(), credentialOf),
    );

    expect(error.code).toBe("pull-credential-invalid");
    expect(error.message).toBe(
      `cannot resolve module: module OCI ${registry.authority}/a/b:v1: the step credential "regcred" has no entry for ${registry.authority} (it has: index.docker.io, quay.io, reg:5000)`,
    );
    expect(registry.requests).toEqual([]);
  });

  it("[C11] [W7] the entry with the longest path counts", async () => {
    const source = privateModule(registry, "org-a/x");
    registry.requireBasic(LOGIN);
    const { authority } = registry;
    const bad = { username: "u", password: "hunter2-wrong" };
    const credentialOf = regcred({
      [authority]: bad,
      [`${authority}/org-a`]: bad,
      [`${authority}/org-a/x`]: LOGIN,
      [`${authority}/org-a/x/y`]: bad,
      [`${authority}/org-a/xx`]: bad,
    });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
  });

  it.each(["org-b/x", "org-a-b/x", "org/org-a"])(
    "[C11] nobody is given the secret of org-a for %s",
    async (repository) => {
      const { authority } = registry;
      const auths = { [`${authority}/org-a`]: { auth: LOGIN_AUTH } };
      registry.requireBasic(LOGIN);

      const ofRuntime = await failureOf(
        pull(withDockerConfig({ auths }), publicModule(registry, repository)),
      );
      const seen = registry.requests.length;
      const ofStep = await failureOf(
        pull(rig.loader(), privateModule(registry, repository), regcred(auths)),
      );

      expect(ofRuntime.message).toContain(
        `: ${authority}: the registry wants a credential and there is none for it`,
      );
      expect(seen).toBe(1);
      expect(registry.requests[0]?.hasAuthorization).toBe(false);
      expect(ofStep.message).toContain(
        `has no entry for ${authority} (it has: ${authority}/org-a)`,
      );
      expect(registry.requests).toHaveLength(seen);
    },
  );

  it.each([
    { glob: "*.0.0.1", matches: true },
    { glob: "1*7.0.*.1", matches: true },
    { glob: "*.0.1", matches: false },
    { glob: "*", matches: false },
    { glob: "*.*.0.0.1", matches: false },
    { glob: "127.0.0.1*", matches: true },
  ])("[C11] a star stands for one label: $glob", async ({ glob, matches }) => {
    const source = publicModule();
    registry.requireBasic(LOGIN);
    const port = registry.authority.replace(/^.*:/u, "");
    const loading = withDockerConfig({ auths: { [`${glob}:${port}`]: LOGIN } });

    const pulling = pull(loading, source);

    if (matches) expect((await pulling).bytes).toEqual(WASM);
    else
      expect((await failureOf(pulling)).message).toContain(
        "there is none for it",
      );
  });

  it("[C12] a missing credential helper fails its own registry's pulls only", async () => {
    const other = await rig.registry();
    registry.requireBasic(LOGIN);
    other.requireBasic(LOGIN);
    const PATH = rig.directory("bin");
    const loading = withDockerConfig(
      {
        auths: {
          [registry.authority]: { auth: LOGIN_AUTH },
          [other.authority]: { auth: LOGIN_AUTH },
        },
        credHelpers: { [registry.authority]: "nope" },
        credsStore: "desktop",
      },
      { env: { PATH } },
    );

    const error = await failureOf(pull(loading, publicModule()));
    const there = await pull(loading, publicModule(other));

    expect(error.code).toBe("pull-credential-invalid");
    expect(error.message).toContain("docker-credential-nope");
    expect(error.message).toContain(registry.authority);
    expect(registry.requests).toEqual([]);
    expect(there.bytes).toEqual(WASM);
    expect(loading.lines).toContainEqual({
      level: "warn",
      fields: { helper: "desktop" },
      message: "the Docker config's credsStore is missing",
    });
  });

  it("[C13] reads a legacy .dockercfg", async () => {
    const source = privateModule();
    registry.requireBasic(LOGIN);
    const legacy = { [`https://${registry.authority}/v1/`]: LOGIN };
    const data = new Map([[".dockercfg", Buffer.from(JSON.stringify(legacy))]]);

    const { bytes } = await pull(rig.loader(), source, () => data);

    expect(bytes).toEqual(WASM);
  });

  it("[C13] names the keys that a step credential is expected to have", async () => {
    const data = new Map([["config.json", Buffer.from("{}")]]);

    const error = await failureOf(
      pull(rig.loader(), privateModule(), () => data),
    );

    expect(error.code).toBe("pull-credential-invalid");
    expect(error.message).toContain(
      "expected .dockerconfigjson, .dockercfg, or username and password",
    );
    expect(registry.requests).toEqual([]);
  });

  it.each([
    { name: "with padding", value: LOGIN_AUTH },
    { name: "without padding", value: LOGIN_AUTH.replaceAll("=", "") },
    {
      name: "with line breaks",
      value: `${LOGIN_AUTH.slice(0, 4)}\r\n${LOGIN_AUTH.slice(4)}\n`,
    },
  ])("[C14] reads auth $name", async ({ value }) => {
    const source = privateModule();
    registry.requireBasic(LOGIN);
    const credentialOf = regcred({ [registry.authority]: { auth: value } });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
  });

  it.each([
    { name: "no base64", value: "%%%%", want: "auth is not base64" },
    { name: "no pair", value: "dXB3", want: "auth has no colon" },
    { name: "no user", value: "OnB3", want: "the user name is empty" },
    { name: "cut off", value: "dTpwO", want: "auth is not base64" },
    { name: "no text", value: "//79", want: "auth is not base64 of UTF-8" },
  ])(
    "[C14] [W7] is not anonymous with an auth that is $name",
    async ({ value, want }) => {
      const auths = { [registry.authority]: { auth: value } };

      const ofStep = await failureOf(
        pull(rig.loader(), privateModule(), regcred(auths)),
      );
      const ofRuntime = await failureOf(
        pull(withDockerConfig({ auths }), publicModule()),
      );

      for (const { code, message } of [ofStep, ofRuntime]) {
        expect(code).toBe("pull-credential-invalid");
        expect(message).toContain(
          `the entry for ${registry.authority} cannot be used: ${want}`,
        );
        expect(message).not.toContain(value);
      }
      expect(registry.requests).toEqual([]);
    },
  );

  it("[C15] says that a credential is missing before any request", async () => {
    const error = await failureOf(
      pull(rig.loader(), privateModule(), regcred({})),
    );
    const missing = await failureOf(pull(rig.loader(), privateModule()));

    expect(error.message).toContain("(it has: none)");
    expect(missing.code).toBe("pull-credential-missing");
    expect(missing.message).toBe(
      `cannot resolve module: module OCI ${registry.authority}/a/b:v1: module.oci.credentials names "regcred", expected a credential of that name on the pipeline step, got none`,
    );
    expect(registry.requests).toEqual([]);
  });

  it("[C16] shows a credential to its own registry only", async () => {
    const other = await rig.registry();
    registry.requireBasic(LOGIN);
    other.requireBasic(LOGIN);
    const auths = { [registry.authority]: { auth: LOGIN_AUTH } };
    const loading = withDockerConfig({ auths });

    const here = await pull(loading, publicModule());
    const there = await failureOf(pull(loading, publicModule(other)));

    expect(here.bytes).toEqual(WASM);
    expect(there.code).toBe("registry-auth-failed");
    expect(there.message).toContain(
      `${other.authority}: the registry wants a credential and there is none for it`,
    );
    expect(other.requests.map((each) => each.hasAuthorization)).toEqual([
      false,
    ]);
  });

  it("[W2] asks as anybody first", async () => {
    const open = await rig.registry();
    registry.requireBasic(LOGIN);
    const auths = { [registry.authority]: LOGIN, [open.authority]: LOGIN };

    await pull(rig.loader(), privateModule(), regcred(auths));
    await pull(rig.loader(), privateModule(open), regcred(auths));

    const [first, ...others] = registry.requests;
    expect(first?.hasAuthorization).toBe(false);
    expect(others.length).toBeGreaterThan(2);
    expect(others.every((each) => each.hasAuthorization)).toBe(true);
    // Nobody asked there.
    expect(open.requests.some((each) => each.hasAuthorization)).toBe(false);
  });

  it("[W7] changes an identity token for a token", async () => {
    const source = privateModule();
    registry.requireBearer(LOGIN, { identityToken: "hunter2-refresh" });
    const credentialOf = regcred({
      [registry.authority]: {
        auth: auth("<token>", "x"),
        identitytoken: "hunter2-refresh",
      },
    });

    const { bytes } = await pull(rig.loader(), source, credentialOf);

    expect(bytes).toEqual(WASM);
    expect(tokenRequests(registry).map(({ method }) => method)).toEqual([
      "POST",
    ]);
  });

  it.each(["Basic", "Bearer"])(
    "[C40] pulls a private module at the first try: %s",
    async (scheme) => {
      const source = privateModule();
      if (scheme === "Basic") registry.requireBasic(LOGIN);
      else registry.requireBearer(LOGIN);
      // As `kubectl create secret docker-registry` writes it.
      const credentialOf = regcred({
        [registry.authority]: { ...LOGIN, email: "", auth: LOGIN_AUTH },
      });
      const loading = rig.loader();

      const pulled = await pull(loading, source, credentialOf);

      expect(pulled).toMatchObject({ bytes: WASM, manifest: MANIFEST });
      expect(loading.lines.filter(({ level }) => level !== "info")).toEqual([]);
    },
  );

  it("[C48] one place is one place, however it is spelled", async () => {
    const { manifestDigest } = registry.addModule("a/b", { wasm: WASM });
    const port = registry.authority.replace(/^.*:/u, "");
    const loading = rig.loader();
    const spelled = (host: string) =>
      pinned(`${host}:${port}/a/b`, manifestDigest);

    const first = await pull(loading, spelled("localhost"));
    const requests = registry.requests.length;
    const others = await Promise.all(
      ["LOCALHOST", "localhost.", "LocalHost."].map((host) =>
        pull(loading, spelled(host)),
      ),
    );

    expect(first.description).toBe(
      `OCI localhost:${port}/a/b@${manifestDigest}`,
    );
    for (const other of others) expect(other).toEqual(first);
    expect(registry.requests).toHaveLength(requests);
  });
});
