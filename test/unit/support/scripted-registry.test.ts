import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect } from "node:tls";

import { afterEach, beforeEach, describe, expect, it } from "vitest";

import {
  startScriptedRegistry,
  type ScriptedRegistry,
} from "../../support/scripted-registry.js";
import { missingTool } from "../../support/tools.js";
import { createCertificateMaker } from "../function/certificates.js";

const WASM = Buffer.from("\0asm module");
const LOGIN = { username: "tester", password: "hunter2" };
const BASIC = { authorization: `Basic ${btoa("tester:hunter2")}` };

let registry: ScriptedRegistry;

beforeEach(async () => {
  registry = await startScriptedRegistry();
});
afterEach(async () => await registry.stop());

function ask(path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${registry.url}${path}`, init);
}

async function bytesOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

describe("support/scripted-registry", () => {
  it("serves a module by tag and digest", async () => {
    const module = registry.addModule("a/b", {
      wasm: WASM,
      manifest: "{}",
      tag: "v1",
    });

    const byTag = await ask("/v2/a/b/manifests/v1");
    const bytes = await bytesOf(byTag);
    const byDigest = await ask(`/v2/a/b/manifests/${module.manifestDigest}`);
    const blob = await ask(`/v2/a/b/blobs/${module.layerDigest}`);

    expect(sha256(bytes)).toBe(module.manifestDigest);
    expect(await bytesOf(byDigest)).toEqual(bytes);
    expect(byTag.headers.get("docker-content-digest")).toBe(
      module.manifestDigest,
    );
    expect(byTag.headers.get("content-type")).toBe(
      "application/vnd.oci.image.manifest.v1+json",
    );
    expect(JSON.parse(bytes.toString())).toMatchObject({
      layers: [
        {
          mediaType: "application/wasm",
          digest: sha256(WASM),
          size: WASM.length,
        },
        { mediaType: "application/vnd.wasmfn.manifest.v1+json", size: 2 },
      ],
    });
    expect(await bytesOf(blob)).toEqual(WASM);
  });

  it("tells the digest of a tar layer from its module's", () => {
    const tar = Buffer.from("tar");

    const module = registry.addModule("a", { wasm: WASM, tar });

    expect(module.layerDigest).toBe(sha256(tar));
    expect(module.moduleDigest).toBe(sha256(WASM));
  });

  it.each([
    { path: "/v2/a/manifests/v2", want: "MANIFEST_UNKNOWN" },
    { path: "/v2/other/manifests/v1", want: "MANIFEST_UNKNOWN" },
    { path: `/v2/a/blobs/${sha256(Buffer.from("?"))}`, want: "BLOB_UNKNOWN" },
    { path: "/", want: "NAME_UNKNOWN" },
  ])("does not have $path", async ({ path, want }) => {
    registry.addModule("a", { wasm: WASM, tag: "v1" });

    const response = await ask(path);

    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ errors: [{ code: want }] });
  });

  it("answers HEAD without a body and moves a tag", async () => {
    registry.addManifest("a", { old: true }, "v1");
    const digest = registry.addManifest("a", Buffer.from("{}"), "v1", "x/y");

    const response = await ask("/v2/a/manifests/v1", { method: "HEAD" });

    expect(response.headers.get("docker-content-digest")).toBe(digest);
    expect(response.headers.get("content-type")).toBe("x/y");
    expect(response.headers.get("content-length")).toBe("2");
    expect(await response.text()).toBe("");
  });

  it("logs what came", async () => {
    await ask("/v2/?a=b", { headers: BASIC });
    await ask("/v2/%61", { method: "POST", body: "text" });

    expect(registry.requests).toMatchObject([
      { method: "GET", path: "/v2/", hasAuthorization: true },
      {
        method: "POST",
        path: "/v2/%61",
        hasAuthorization: false,
        body: Buffer.from("text"),
      },
    ]);
    expect(registry.requests[0]?.query.get("a")).toBe("b");
    expect(registry.requests[0]?.headers.authorization).toBe(
      BASIC.authorization,
    );
  });

  it("asks the latest intercept first, and before the login", async () => {
    registry.requireBasic(LOGIN);
    registry.intercept(() => ({ status: 418 }));
    registry.intercept(({ path }) =>
      path === "/v2/" ? { status: 429, headers: { "retry-after": 7 } } : "pass",
    );

    const latest = await ask("/v2/");
    const earlier = await ask("/v2/a");

    expect(latest.status).toBe(429);
    expect(latest.headers.get("retry-after")).toBe("7");
    expect(earlier.status).toBe(418);
  });

  it("drops a connection", async () => {
    registry.intercept(() => "drop");

    await expect(ask("/v2/")).rejects.toThrow("fetch failed");
    expect(registry.requests).toHaveLength(1);
  });

  it.each([
    { name: "with a length", headers: { "content-length": 10 }, want: "10" },
    { name: "without one", headers: {}, want: null },
  ])("truncates a body $name", async ({ headers, want }) => {
    registry.intercept(() => ({
      status: 200,
      headers,
      body: "half",
      ending: "drop",
    }));

    const response = await ask("/v2/");

    expect(response.headers.get("content-length")).toBe(want);
    await expect(response.text()).rejects.toThrow("terminated");
  });

  it.each([
    { name: "without an answer", reaction: "hang" },
    {
      name: "in the middle of a body",
      reaction: { status: 200, body: "half", ending: "hang" },
    },
  ] as const)("hangs $name until it is stopped", async ({ reaction }) => {
    registry.intercept(() => reaction);
    const text = ask("/v2/").then((response) => response.text());
    const outcome = expect(text).rejects.toThrow(/fetch failed|terminated/u);
    const first = await Promise.race([
      text.catch(() => "failed"),
      new Promise((resolve) => setTimeout(resolve, 50, "silence")),
    ]);

    await registry.stop();

    expect(first).toBe("silence");
    await outcome;
  });

  it("streams without end until the client leaves", async () => {
    let ended: () => void;
    const end = new Promise<void>((resolve) => (ended = resolve));
    registry.intercept(() => ({ status: 200, body: endless(() => ended()) }));

    const response = await ask("/v2/");
    let count = 0;
    for await (const chunk of (response.body ??
      []) as AsyncIterable<Uint8Array>) {
      count += chunk.length;
      if (count > 1024 * 1024) break;
    }

    await end;
    expect(count).toBeGreaterThan(1024 * 1024);
    expect(response.headers.get("content-length")).toBeNull();
  });

  it("comes back on the same port with what it had", async () => {
    registry.addManifest("a", {}, "v1");
    await (await ask("/v2/")).text();

    await registry.stop();
    await expect(ask("/v2/")).rejects.toThrow("fetch failed");
    await registry.restart();

    expect((await ask("/v2/a/manifests/v1")).status).toBe(200);
    expect(registry.requests).toHaveLength(2);
  });

  it.skipIf(missingTool("openssl"))("has a certificate", async () => {
    const maker = createCertificateMaker();
    const ca = readFileSync(maker.authority("ca"));
    const { cert, key } = maker.leaf({
      name: "leaf",
      authority: "ca",
      usage: "serverAuth",
      subject: "/CN=localhost",
    });
    const tls = { cert: readFileSync(cert), key: readFileSync(key) };
    maker.remove();

    const secured = await startScriptedRegistry({ tls });
    const { hostname: host, port, origin } = new URL(secured.url);
    const socket = connect({ host, port: Number(port), servername: host, ca });
    await once(socket, "secureConnect");
    const closed = once(socket, "close");
    await secured.stop();
    await closed;

    expect(origin).toBe(`https://localhost:${port}`);
    expect(secured.authority).toBe(`localhost:${port}`);
  });
});

describe("support/scripted-registry authentication", () => {
  it("wants a login", async () => {
    registry.requireBasic(LOGIN);

    const without = await ask("/v2/");
    const wrong = await ask("/v2/", {
      headers: { authorization: `Basic ${btoa("tester:wrong")}` },
    });
    const right = await ask("/v2/", { headers: BASIC });

    expect(without.status).toBe(401);
    expect(without.headers.get("www-authenticate")).toBe(
      'Basic realm="scripted registry"',
    );
    expect(wrong.status).toBe(401);
    expect(right.status).toBe(200);
  });

  it("gives tokens for one repository, and takes them until they are revoked", async () => {
    registry.addManifest("a", {}, "v1");
    registry.addManifest("b", {}, "v1");
    const tokens = registry.requireBearer(LOGIN, { tokenTtlSeconds: 60 });
    const scope = "repository:a:pull,push";

    const challenge = (await ask("/v2/a/manifests/v1")).headers;
    const answer = await ask(`/token?scope=${scope}`, { headers: BASIC });
    const { token, expires_in } = (await answer.json()) as {
      token: string;
      expires_in: number;
    };
    const bearer = { headers: { authorization: `Bearer ${token}` } };
    const good = await ask("/v2/a/manifests/v1", bearer);
    const other = await ask("/v2/b/manifests/v1", bearer);
    tokens.revoke();
    const revoked = await ask("/v2/a/manifests/v1", bearer);

    expect(challenge.get("www-authenticate")).toBe(
      `Bearer realm="${registry.url}/token",service="scripted registry",scope="repository:a:pull"`,
    );
    expect(expires_in).toBe(60);
    expect(good.status).toBe(200);
    expect(other.headers.get("www-authenticate")).toContain(
      'error="insufficient_scope"',
    );
    expect(revoked.headers.get("www-authenticate")).toContain(
      'error="invalid_token"',
    );
  });

  it.each([
    { name: "nobody", init: {}, want: 401 },
    { name: "a login", init: { headers: BASIC }, want: 200 },
    { name: "a password grant", init: form("password", LOGIN), want: 200 },
    {
      name: "a wrong password",
      init: form("password", { ...LOGIN, password: "hunter2-wrong" }),
      want: 401,
    },
    {
      name: "an identity token",
      init: form("refresh_token", { refresh_token: "hunter2-identity" }),
      want: 200,
    },
    {
      name: "no identity token",
      init: form("refresh_token", {}),
      want: 401,
    },
  ])("answers $name with $want at /token", async ({ init, want }) => {
    registry.requireBearer(LOGIN, { identityToken: "hunter2-identity" });

    expect((await ask("/token", init)).status).toBe(want);
  });

  it("gives anybody a token where there is no login", async () => {
    registry.requireBearer(null);

    expect((await ask("/token")).status).toBe(200);
  });
});

function form(grant: string, fields: Record<string, string>): RequestInit {
  const body = new URLSearchParams({ grant_type: grant, ...fields });
  return { method: "POST", body };
}

async function* endless(ended: () => void): AsyncGenerator<Uint8Array> {
  try {
    for (;;) {
      await new Promise(setImmediate);
      yield Buffer.alloc(16 * 1024);
    }
  } finally {
    ended();
  }
}
