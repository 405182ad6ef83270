import { Agent, fetch, type RequestInit } from "undici";

import {
  DOCKER_REGISTRY_LOGIN,
  type DockerRegistry,
} from "../../support/docker-registry.js";
import {
  createRegistryContent,
  type Content,
  type ModuleContent,
  type PublishedModule,
} from "../../support/registry-content.js";

const { username, password } = DOCKER_REGISTRY_LOGIN;
const AUTHORIZATION = `Basic ${btoa(`${username}:${password}`)}`;

/** Publishes modules in a registry with TLS and the login, as the distribution specification says. */
export interface Publisher {
  module(repository: string, module: ModuleContent): Promise<PublishedModule>;
  manifest(
    repository: string,
    reference: string,
    manifest: Pick<Content, "bytes" | "mediaType">,
  ): Promise<void>;
  close(): Promise<void>;
}

/** @throws Error for whatever the registry refuses */
export function createPublisher({
  authority,
  caPem,
}: DockerRegistry): Publisher {
  const dispatcher = new Agent({ connect: { ca: caPem ?? "" } });

  async function send(
    path: string,
    init: Pick<RequestInit, "method" | "body">,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const response = await fetch(new URL(path, `https://${authority}`), {
      ...init,
      headers: { authorization: AUTHORIZATION, ...headers },
      dispatcher,
    });
    if (response.ok) return response.headers.get("location") ?? "";
    throw new Error(`${path}: ${response.status} ${await response.text()}`);
  }

  async function putBlob(
    repository: string,
    { bytes, digest }: Content,
  ): Promise<void> {
    const uploads = `/v2/${repository}/blobs/uploads/`;
    const location = await send(uploads, { method: "POST" });
    const body = Buffer.from(bytes);
    await send(`${location}&digest=${digest}`, { method: "PUT", body });
  }

  async function putManifest(
    repository: string,
    reference: string,
    { bytes, mediaType }: Pick<Content, "bytes" | "mediaType">,
  ): Promise<void> {
    const path = `/v2/${repository}/manifests/${reference}`;
    const body = Buffer.from(bytes);
    const headers = { "content-type": mediaType };
    await send(path, { method: "PUT", body }, headers);
  }

  return {
    async module(repository, module) {
      const content = createRegistryContent();
      const published = content.addModule(repository, module);
      const { manifestDigest } = published;
      const manifest = content.manifest(repository, manifestDigest);
      if (manifest === null) throw new Error("the manifest was not made");
      for (const [digest] of manifestText(manifest).matchAll(DIGEST)) {
        const blob = content.blob(digest);
        if (blob !== null) await putBlob(repository, blob);
      }
      await putManifest(repository, module.tag ?? manifestDigest, manifest);
      return published;
    },
    manifest: putManifest,
    close: () => dispatcher.close(),
  };
}

const DIGEST = /sha256:[0-9a-f]{64}/gu;

function manifestText({ bytes }: Content): string {
  return Buffer.from(bytes).toString();
}
