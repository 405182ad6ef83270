import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Send } from "../../../../src/loader/http/transport.js";
import { LoaderError } from "../../../../src/loader/error.js";
import { buildArtifact } from "../../../../src/loader/oci/artifact.js";
import { registryWords } from "../../../../src/loader/oci/registry-words.js";
import {
  pushArtifact,
  type PushProgress,
  type PushTarget,
} from "../../../../src/loader/oci/upload.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { nodeSend } from "./node-send.js";
import {
  type Answer,
  PushRegistry,
  type Received,
  REPOSITORY,
  sha256,
  STATE,
  Store,
  TOKEN,
} from "./push-registry.js";

/** More than a stream reads at once. */
const MODULE = Buffer.alloc(200_000, "module ");
const MODULE_MANIFEST = Buffer.from('{"name":"greeter"}');
const ARTIFACT = buildArtifact({
  module: { digest: sha256(MODULE), sizeBytes: MODULE.length, abi: 1 },
  manifestJson: MODULE_MANIFEST,
  annotations: new Map([["org.opencontainers.image.title", "greeter"]]),
  created: new Date(0),
});
const DIGEST = ARTIFACT.manifestDigest;
const BLOBS = [MODULE, MODULE_MANIFEST, Buffer.from(ARTIFACT.config.bytes)];
const BASE = `/v2/${REPOSITORY}`;
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const OTHER = Buffer.from('{"schemaVersion":2}');

const SCOPE = createRequestScope({ deadlineAtMs: Infinity });

let dir: string;
let store: Store;
let registry: PushRegistry;
/** Where a registry may send uploads; it takes no credential. */
let elsewhere: PushRegistry;
let events: PushProgress[];

describe("loader/oci/upload", () => {
  beforeEach(async () => {
    dir = mkdtempSync(path.join(tmpdir(), "function-wasm-push-"));
    writeFileSync(path.join(dir, "fn.wasm"), MODULE);
    store = new Store();
    registry = await new PushRegistry(store, TOKEN).listen();
    elsewhere = await new PushRegistry(store, null).listen();
    events = [];
  });
  afterEach(async () => {
    await registry.close();
    await elsewhere.close();
    rmSync(dir, { recursive: true });
  });

  it("pushes the blobs, then the manifest under the tag, then looks at it", async () => {
    const pushed = await push({});

    expect(pushed).toEqual({ digest: DIGEST });
    expect([...store.blobs.keys()]).toEqual(BLOBS.map(sha256));
    expect(store.uploads.size).toBe(0);
    expect(store.manifests.get("v1")).toEqual({
      bytes: Buffer.from(ARTIFACT.manifestBytes),
      mediaType: "application/vnd.oci.image.manifest.v1+json",
    });
    const upload = ["POST uploads", "PUT uploads"];
    expect(registry.asked.map(withoutUploadId)).toEqual([
      `GET ${BASE}/manifests/v1`,
      ...BLOBS.flatMap((blob) => [
        `HEAD ${BASE}/blobs/${sha256(blob)}`,
        ...upload,
      ]),
      `PUT ${BASE}/manifests/v1`,
      `GET ${BASE}/manifests/v1`,
    ]);
    expect(events).toEqual([
      ...BLOBS.map((blob) => ({
        kind: "blob-pushed",
        digest: sha256(blob),
        sizeBytes: blob.length,
      })),
      {
        kind: "manifest-pushed",
        digest: DIGEST,
        sizeBytes: ARTIFACT.manifestBytes.length,
      },
    ]);
  });

  it("pushes to the digest when there is no tag", async () => {
    const pushed = await push({ tag: null });

    expect(pushed).toEqual({ digest: DIGEST });
    expect([...store.manifests.keys()]).toEqual([DIGEST]);
    expect(
      registry.asked.filter((asked) => asked.includes("manifests")),
    ).toEqual([
      `PUT ${BASE}/manifests/${DIGEST}`,
      `GET ${BASE}/manifests/${DIGEST}`,
    ]);
  });

  // C39
  it.each([
    { name: "a path with a query", location: (target: string) => target },
    {
      name: "a path relative to the upload's",
      location: (target: string) =>
        target.slice(`${BASE}/blobs/uploads/`.length),
    },
    {
      name: "an absolute URL",
      location: (target: string) => `${registry.origin}${target}`,
    },
  ])("follows an upload to $name, as itself", async ({ location }) => {
    registry.location = location;

    await push({});

    expect([...store.blobs.keys()]).toEqual(BLOBS.map(sha256));
    expect(puts(registry).map(authorization)).toEqual([TOKEN, TOKEN, TOKEN]);
  });

  it("follows an upload to another port without the registry's credential (C39)", async () => {
    registry.location = (target) => `${elsewhere.origin}${target}`;

    const pushed = await push({});

    expect(pushed).toEqual({ digest: DIGEST });
    expect([...store.blobs.keys()]).toEqual(BLOBS.map(sha256));
    expect(puts(registry)).toEqual([]);
    expect(puts(elsewhere).map(authorization)).toEqual([null, null, null]);
    expect(elsewhere.received).toHaveLength(BLOBS.length);
  });

  it("sends nothing when an upload leads to a scheme that is none", async () => {
    registry.location = () => "ftp://reg.test/upload";

    await expect(push({})).rejects.toMatchObject({ code: "redirect-refused" });

    expect(puts(registry)).toEqual([]);
  });

  it("does not push what is there", async () => {
    store.blobs.set(sha256(MODULE), MODULE);

    await push({});

    expect(puts(registry)).toHaveLength(2);
    expect(events[0]).toEqual({
      kind: "blob-exists",
      digest: sha256(MODULE),
      sizeBytes: MODULE.length,
    });
  });

  it.each([204, 302, 307, 404, 405, 429, 500])(
    "uploads a blob when the registry answers %d to whether it has it",
    async (status) => {
      registry.answer = ({ method }) => (method === "HEAD" ? { status } : null);

      await push({});

      expect(puts(registry)).toHaveLength(3);
    },
  );

  describe("a tag", () => {
    it("that leads to the artifact stays, and blobs that are missing are pushed", async () => {
      await push({});
      store.blobs.delete(sha256(MODULE_MANIFEST));
      registry.received.length = 0;
      events = [];

      const pushed = await push({});

      expect(pushed).toEqual({ digest: DIGEST });
      expect(events.map(({ kind }) => kind)).toEqual([
        "blob-exists",
        "blob-pushed",
        "blob-exists",
        "manifest-exists",
      ]);
      expect(registry.asked).not.toContain(`PUT ${BASE}/manifests/v1`);
      expect(store.blobs.get(sha256(MODULE_MANIFEST))).toEqual(MODULE_MANIFEST);
    });

    it.each([
      {
        name: "another artifact",
        mediaType: "application/vnd.oci.image.manifest.v1+json",
      },
      { name: "an index", mediaType: OCI_INDEX },
      {
        name: "a Docker image",
        mediaType: "application/vnd.docker.distribution.manifest.v2+json",
      },
      {
        name: "a Docker manifest list",
        mediaType: "application/vnd.docker.distribution.manifest.list.v2+json",
      },
      { name: "something unheard of", mediaType: "application/x-thing" },
    ])("that leads to $name is not moved", async ({ mediaType }) => {
      store.manifests.set("v1", { bytes: OTHER, mediaType });

      await expect(push({})).rejects.toMatchObject({
        name: "LoaderError",
        code: "registry-refused",
        message: `the tag leads to ${sha256(OTHER)} already, and is not moved to ${DIGEST}; --overwrite moves it`,
      });

      expect(registry.asked).toEqual([`GET ${BASE}/manifests/v1`]);
    });

    it("is moved when it may be", async () => {
      store.manifests.set("v1", { bytes: OTHER, mediaType: OCI_INDEX });

      const pushed = await push({ overwrite: true });

      expect(pushed).toEqual({ digest: DIGEST });
      expect(sha256(store.manifests.get("v1")?.bytes ?? OTHER)).toBe(DIGEST);
    });

    it("that may be moved and need not be stays", async () => {
      await push({});
      registry.received.length = 0;

      await push({ overwrite: true });

      expect(registry.asked).not.toContain(`PUT ${BASE}/manifests/v1`);
    });

    it("that another push has moved meanwhile is no success (R18)", async () => {
      registry.afterManifest = () => {
        store.manifests.set("v1", { bytes: OTHER, mediaType: OCI_INDEX });
      };

      await expect(push({})).rejects.toMatchObject({
        code: "digest-mismatch",
        message: `${registry.host}/${REPOSITORY}: ${sha256(OTHER)} is there after ${DIGEST} was pushed`,
      });

      expect(events.map(({ kind }) => kind)).not.toContain("manifest-pushed");
    });

    it("that is gone after it was pushed is no success", async () => {
      registry.afterManifest = () => {
        store.manifests.delete("v1");
      };

      await expect(push({})).rejects.toMatchObject({
        code: "registry-refused",
      });
    });
  });

  it("takes the bytes of a manifest by digest, not the registry's word", async () => {
    registry.afterManifest = () => {
      registry.answer = () => ({
        status: 200,
        headers: { "docker-content-digest": DIGEST },
        body: OTHER,
      });
    };

    await expect(push({ tag: null })).rejects.toMatchObject({
      code: "digest-mismatch",
      message: `${registry.host}/${REPOSITORY}: ${sha256(OTHER)} is there after ${DIGEST} was pushed`,
    });
  });

  it("reads no more of a manifest than one may have", async () => {
    const body = Buffer.alloc(4 * 1024 * 1024 + 1);
    registry.answer = () => ({ status: 200, body });

    await expect(push({})).rejects.toMatchObject({ code: "answer-too-large" });
  });

  describe("refuses", () => {
    const STEPS = [
      { step: "the look at the tag", asks: "GET manifests" },
      { step: "the opening of an upload", asks: "POST uploads" },
      { step: "an upload", asks: "PUT uploads" },
      { step: "the manifest", asks: "PUT manifests" },
    ];

    it.each(
      STEPS.flatMap(({ step, asks }) =>
        [
          { status: 400, code: "registry-refused" },
          { status: 401, code: "registry-auth-failed" },
          { status: 403, code: "registry-auth-failed" },
          { status: 404, code: "registry-refused" },
          { status: 408, code: "registry-unreachable" },
          { status: 413, code: "registry-refused" },
          { status: 429, code: "registry-unreachable" },
          { status: 500, code: "registry-unreachable" },
          { status: 307, code: "registry-refused" },
        ]
          // No such tag is what most pushes begin with.
          .filter(({ status }) => status !== 404 || !asks.startsWith("GET"))
          .map((row) => ({ step, asks, ...row })),
      ),
    )("$status to $step", async ({ asks, status, code }) => {
      const body = '{"errors":[{"code":"DENIED","message":"no\\nway"}]}';
      registry.answer = answering(asks, { status, body });

      await expect(push({})).rejects.toMatchObject({
        name: "LoaderError",
        code,
        message: expect.stringMatching(
          new RegExp(
            `^${registry.host}/${REPOSITORY}: HTTP ${status}( [A-Za-z ]+)?: DENIED: no way$`,
            "u",
          ),
        ) as string,
      });
    });

    it.each([
      {
        step: "the look at the tag",
        asks: "GET manifests",
        status: 204,
        want: 200,
      },
      {
        step: "the opening of an upload",
        asks: "POST uploads",
        status: 201,
        want: 202,
      },
      { step: "an upload", asks: "PUT uploads", status: 202, want: 201 },
      { step: "the manifest", asks: "PUT manifests", status: 200, want: 201 },
    ])("$status to $step", async ({ asks, status, want }) => {
      registry.answer = answering(asks, { status });

      await expect(push({})).rejects.toMatchObject({
        code: "answer-invalid",
        message: `${registry.host}/${REPOSITORY}: expected HTTP ${want}, got ${status}`,
      });
    });

    it("with no word of another host, and nothing of an upload's URL", async () => {
      registry.location = (target) => `${elsewhere.origin}${target}`;
      elsewhere.answer = () => ({ status: 403, body: `hush ${STATE}` });

      await expect(push({})).rejects.toMatchObject({
        code: "registry-auth-failed",
        message: `${registry.host}/${REPOSITORY} sent on to ${elsewhere.host}: HTTP 403 Forbidden`,
      });
    });

    it("what another host does not take, and says who sent it there", async () => {
      registry.location = (target) => `${elsewhere.origin}${target}`;
      const reason = new LoaderError("tls-failed", "up.test: TLS failed");

      await expect(
        push({}, () => Promise.reject(reason)),
      ).rejects.toMatchObject({
        code: "tls-failed",
        message: `${registry.host}/${REPOSITORY} sent on to up.test: TLS failed`,
      });
    });

    it("a module that is not what its digest says, by the registry's word", async () => {
      writeFileSync(path.join(dir, "fn.wasm"), MODULE.toReversed());

      await expect(push({})).rejects.toMatchObject({
        code: "registry-refused",
        message: `${registry.host}/${REPOSITORY}: HTTP 400 Bad Request: DIGEST_INVALID: said DIGEST_INVALID`,
      });

      expect(store.manifests.size).toBe(0);
    });
  });

  it("speaks https unless told otherwise", async () => {
    const urls: string[] = [];
    const send: Send = ({ url }) => {
      urls.push(url.href);
      return Promise.reject(new Error("stop"));
    };

    const pushing = pushArtifact(
      ARTIFACT,
      { modulePath: "fn.wasm" },
      {
        registry: "reg.test:5000",
        repository: "a/b",
        tag: "v1",
        overwrite: false,
      },
      {
        send,
        sendElsewhere: send,
        wordsOf,
        plainHttp: false,
        onProgress: () => undefined,
      },
      SCOPE,
    );

    await expect(pushing).rejects.toThrow("stop");
    expect(urls).toEqual(["https://reg.test:5000/v2/a/b/manifests/v1"]);
  });
});

function push(target: Partial<PushTarget>, sendElsewhere: Send = sendInScope) {
  return pushArtifact(
    ARTIFACT,
    { modulePath: path.join(dir, "fn.wasm") },
    {
      registry: registry.host,
      repository: REPOSITORY,
      tag: "v1",
      overwrite: false,
      ...target,
    },
    {
      send: (request, scope) =>
        sendInScope(
          { ...request, headers: { ...request.headers, authorization: TOKEN } },
          scope,
        ),
      sendElsewhere,
      wordsOf,
      plainHttp: true,
      onProgress: (event) => events.push(event),
    },
    SCOPE,
  );
}

function sendInScope(...[request, scope]: Parameters<Send>) {
  expect(scope).toBe(SCOPE);
  return nodeSend(request, scope);
}

/** The uploads that were finished. */
function puts({ received }: PushRegistry): Received[] {
  return received.filter((request) => kindOf(request) === "PUT uploads");
}

function authorization({ headers }: Received): string | null {
  return headers.authorization ?? null;
}

function answering(asks: string, answer: Answer) {
  return (request: Received) => (kindOf(request) === asks ? answer : null);
}

function kindOf({ method, target }: Received): string {
  const kind = /(?:blobs\/(uploads)|(manifests))\//u.exec(target);
  return `${method} ${kind?.[1] ?? kind?.[2] ?? ""}`;
}

function withoutUploadId(asked: string): string {
  return asked.replace(/ .*\/blobs\/uploads\/.*$/u, " uploads");
}

function wordsOf(_: unknown, start: Uint8Array): string {
  return registryWords(start);
}
