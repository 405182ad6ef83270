import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { get, type RequestOptions } from "node:https";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

import { afterEach, describe, expect, it } from "vitest";

import {
  DOCKER_REGISTRY_LOGIN,
  haveDockerRegistry,
  startDockerRegistry,
  type DockerRegistry,
  type DockerRegistryOptions,
} from "../../support/docker-registry.js";
import { createRegistryContent } from "../../support/registry-content.js";
import { missingTool } from "../../support/tools.js";

const { username, password } = DOCKER_REGISTRY_LOGIN;
const BASIC = `Basic ${btoa(`${username}:${password}`)}`;

const started: DockerRegistry[] = [];

afterEach(async () => {
  for (const registry of started.splice(0)) await registry.stop();
});

async function start(options?: DockerRegistryOptions): Promise<DockerRegistry> {
  const registry = await startDockerRegistry(options);
  started.push(registry);
  return registry;
}

describe.skipIf(!haveDockerRegistry())("support/docker-registry", () => {
  it("keeps what is pushed with the password, across a restart", async () => {
    const registry = await start({ auth: DOCKER_REGISTRY_LOGIN });
    const wasm = Buffer.alloc(64 * 1024, "module");
    const digest = await push(registry, "a/b", wasm);

    await registry.restart();
    const response = await ask(registry, `/v2/a/b/blobs/${digest}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const withoutLogin = await ask(registry, "/v2/a/b/manifests/v1?x=%22", {
      headers: { authorization: "Basic wrong" },
    });

    expect(bytes).toEqual(wasm);
    expect(withoutLogin.status).toBe(401);
    expect((await registry.requests()).slice(-3)).toEqual([
      { method: "PUT", path: "/v2/a/b/manifests/v1", status: 201 },
      { method: "GET", path: `/v2/a/b/blobs/${digest}`, status: 200 },
      { method: "GET", path: "/v2/a/b/manifests/v1?x=%22", status: 401 },
    ]);
  });

  it("starts again on a port and storage of its own", async () => {
    const storageDir = await mkdtemp(join(tmpdir(), "docker-registry-test-"));
    const first = await start({ storageDir });
    const digest = await push(first, "a", Buffer.from("module"));

    await first.stop();
    await expect(ask(first, "/v2/")).rejects.toThrow("fetch failed");
    const second = await start({ storageDir, port: first.port });

    expect(second.authority).toBe(first.authority);
    expect((await ask(second, `/v2/a/blobs/${digest}`)).status).toBe(200);
    await rm(storageDir, { recursive: true });
  });

  it("leaves no files behind", async () => {
    const registry = await start();
    await ask(registry, "/v2/");

    await registry.stop({ keepFiles: true });
    const kept = existsSync(dirname(registry.storageDir));
    const requests = await registry.requests();
    await registry.stop();

    expect(kept).toBe(true);
    expect(requests).toEqual([{ method: "GET", path: "/v2/", status: 200 }]);
    expect(existsSync(dirname(registry.storageDir))).toBe(false);
  });

  it("says why it does not start", async () => {
    await expect(start({ port: 65_536 })).rejects.toThrow("invalid port");
  });

  it.skipIf(missingTool("openssl"))("has a certificate", async () => {
    const { authority, caFile, caPem, ...registry } = await start({
      tls: true,
    });
    const url = `https://${authority}/v2/`;

    await expect(getTls(url, {})).rejects.toThrow("unable to");
    expect(await getTls(url, { ca: caPem ?? "" })).toBe(200);
    expect(readFileSync(caFile ?? "", "utf8")).toBe(caPem);
    await registry.restart();
    expect(await getTls(url, { ca: caPem ?? "" })).toBe(200);
  });
});

function ask(
  { authority }: DockerRegistry,
  path: string,
  init: RequestInit = { headers: { authorization: BASIC } },
): Promise<Response> {
  return fetch(new URL(path, `http://${authority}`), init);
}

function getTls(url: string, options: RequestOptions): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const onAnswer = (answer: IncomingMessage) => {
      answer.resume().on("end", () => resolve(answer.statusCode));
    };
    get(url, { ...options, agent: false }, onAnswer).on("error", reject);
  });
}

/** Pushes a module as v1, and returns its digest. */
async function push(
  registry: DockerRegistry,
  repository: string,
  wasm: Uint8Array,
): Promise<string> {
  const content = createRegistryContent();
  const { layerDigest } = content.addModule(repository, { wasm, tag: "v1" });
  const config = Buffer.from("{}");
  const blobs = [
    { bytes: wasm, digest: layerDigest },
    { bytes: config, digest: content.addBlob(config) },
  ];
  for (const { bytes, digest } of blobs) {
    const begun = await ask(registry, `/v2/${repository}/blobs/uploads/`, {
      method: "POST",
      headers: { authorization: BASIC },
    });
    const location = begun.headers.get("location") ?? "";
    await ask(registry, `${location}&digest=${digest}`, {
      method: "PUT",
      headers: { authorization: BASIC },
      body: Buffer.from(bytes),
    });
  }
  const manifest = content.manifest(repository, "v1");
  await ask(registry, `/v2/${repository}/manifests/v1`, {
    method: "PUT",
    headers: {
      authorization: BASIC,
      "content-type": manifest?.mediaType ?? "",
    },
    body: Buffer.from(manifest?.bytes ?? []),
  });
  return layerDigest;
}
