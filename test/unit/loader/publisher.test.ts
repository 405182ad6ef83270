import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  createPublisher,
  createSourceParsers,
  type Publication,
  type Publisher,
} from "../../../src/loader/index.js";
import type { OciReference } from "../../../src/ports.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import { realClock, recordingLogger } from "../function/fixtures.js";
import { openScope } from "./loading.js";
import {
  PushRegistry,
  REPOSITORY,
  sha256,
  Store,
} from "./oci/push-registry.js";

const MODULE = Buffer.from("\0asm\x01\0\0\0 a module");
const LOGIN = { username: "tester", password: "hunter2" };
const BASIC = `Basic ${Buffer.from("tester:hunter2").toString("base64")}`;
const SCHEME = {
  insecureHosts: [],
  registryCas: new Map(),
  tokenServers: new Map(),
};

let dir: string;
let publisher: Publisher | null;

beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), "publisher-"));
  writeFileSync(path.join(dir, "fn.wasm"), MODULE);
  publisher = null;
});
afterEach(async () => {
  await publisher?.close();
  rmSync(dir, { recursive: true });
});

describe("loader/publisher push", () => {
  let store: Store;
  let registry: PushRegistry;

  beforeEach(async () => {
    store = new Store();
    registry = await new PushRegistry(store, BASIC).listen();
    registry.answer = ({ headers }) =>
      headers.authorization === undefined
        ? {
            status: 401,
            headers: { "www-authenticate": 'Basic realm="registry"' },
          }
        : null;
  });
  afterEach(() => registry.close());

  it("signs in with the credential of the Docker config", async () => {
    const digest = await publisherFor(registry.host, LOGIN).push(
      publication(registry.host),
      openScope(),
    );

    expect([...store.manifests.keys()]).toEqual(["v1", digest]);
    expect([...store.blobs.keys()]).toContain(sha256(MODULE));
    // The first question alone is asked as anybody.
    const anonymous = registry.received.filter(
      ({ headers }) => headers.authorization === undefined,
    );
    expect(anonymous).toHaveLength(1);
  });

  it("tries again what may pass", async () => {
    let failures = 1;
    const { answer } = registry;
    registry.answer = (request) =>
      request.method === "PUT" &&
      request.headers.authorization !== undefined &&
      failures-- > 0
        ? { status: 503 }
        : answer(request);

    await publisherFor(registry.host, LOGIN).push(
      publication(registry.host),
      openScope(),
    );

    expect(store.manifests.has("v1")).toBe(true);
  });

  it.each([
    { name: "no credential", login: null },
    { name: "a wrong one", login: { ...LOGIN, password: "hunter2-wrong" } },
  ])(
    "says what it cannot push with $name, and no secret",
    async ({ login }) => {
      const pushed = publisherFor(registry.host, login).push(
        publication(registry.host),
        openScope(),
      );

      const error: unknown = await pushed.catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({
        code: "registry-auth-failed",
        message: expect.stringMatching(
          `^cannot push ${registry.host}/${REPOSITORY}:v1: ${registry.host}`,
        ) as string,
      });
      expect(String(error)).not.toContain("hunter2-wrong");
      expect(store.blobs.size).toBe(0);
    },
  );
});

describe("loader/publisher inspect", () => {
  let registry: ScriptedRegistry;

  beforeEach(async () => {
    registry = await startScriptedRegistry();
  });
  afterEach(() => registry.stop());

  it("asks for a token to pull with, and for the small parts only", async () => {
    registry.requireBearer(LOGIN);
    const { manifestDigest, layerDigest } = registry.addModule("a/b", {
      wasm: MODULE,
      manifest: '{"abi":1}',
      tag: "v1",
    });

    const found = await publisherFor(registry.authority, LOGIN).inspect(
      reference(`${registry.authority}/a/b:v1`),
      openScope(),
    );

    expect(found).toMatchObject({
      digest: manifestDigest,
      layers: [
        { digest: layerDigest, role: "module" },
        { role: "module-manifest" },
      ],
      moduleManifest: { form: "layer", bytes: Buffer.from('{"abi":1}') },
    });
    const scopes = registry.requests.flatMap(({ query }) =>
      query.getAll("scope"),
    );
    expect(scopes).toEqual(["repository:a/b:pull"]);
    expect(registry.requests.map(({ path: asked }) => asked)).not.toContain(
      `/v2/a/b/blobs/${layerDigest}`,
    );
  });

  it.each([
    {
      name: "the only layer in a tar archive",
      layer: "application/vnd.oci.image.layer.v1.tar",
      role: "module-in-tar",
    },
    { name: "an only layer", layer: "application/x", role: "module" },
  ])("tells $name", async ({ layer, role }) => {
    registry.addModule("a/b", {
      wasm: MODULE,
      layerMediaType: layer,
      tag: "v1",
    });

    const { layers } = await publisherFor(registry.authority, null).inspect(
      reference(`${registry.authority}/a/b:v1`),
      openScope(),
    );

    expect(layers).toMatchObject([{ mediaType: layer, role }]);
  });

  it.each([
    {
      name: "nothing to look for",
      ref: "",
      code: "artifact-invalid",
      want: "the reference has no tag and no digest",
    },
    {
      name: "an artifact without a module",
      ref: ":zip",
      code: "artifact-invalid",
      want: "no layer is a module",
    },
  ])("refuses $name", async ({ ref, code, want }) => {
    registry.addModule("a/b", {
      wasm: MODULE,
      layerMediaType: "application/zip",
      tag: "zip",
    });

    await expect(
      publisherFor(registry.authority, null).inspect(
        reference(`${registry.authority}/a/b${ref}`),
        openScope(),
      ),
    ).rejects.toMatchObject({
      code,
      message: expect.stringContaining(
        `cannot inspect ${registry.authority}/a/b${ref}: ${want}`,
      ) as string,
    });
  });
});

function publisherFor(host: string, login: typeof LOGIN | null): Publisher {
  const file = path.join(dir, "config.json");
  const auths = login === null ? {} : { [host]: login };
  writeFileSync(file, JSON.stringify({ auths }));
  publisher = createPublisher(
    { ...SCHEME, dockerConfigFile: file, env: {} },
    { clock: realClock, logger: recordingLogger().logger },
  );
  return publisher;
}

function publication(host: string): Publication {
  return {
    ref: reference(`${host}/${REPOSITORY}:v1`),
    module: { digest: sha256(MODULE), sizeBytes: MODULE.length, abi: 1 },
    modulePath: path.join(dir, "fn.wasm"),
    manifestJson: null,
    annotations: new Map(),
    created: new Date(0),
    overwrite: false,
    onProgress: () => undefined,
  };
}

function reference(text: string): OciReference {
  const parsed = createSourceParsers(SCHEME).parseReference(text);
  if (parsed.kind === "ok") return parsed.value;
  throw new Error(parsed.message);
}
