import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import {
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
} from "vitest";
import type { PullContext } from "../../../src/loader/index.js";
import type { Digest, ModuleSource } from "../../../src/ports.js";
import type { Answer, Reaction } from "../../support/registry-exchange.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import {
  createCertificateAuthorities,
  type KeyPair,
} from "./http/certificates.js";
import { openScope, pinned, tagged, type TestLoader } from "./loading.js";
import { tar } from "./oci/tar-writer.js";
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

const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";
const INDEX_TYPE = "application/vnd.oci.image.index.v1+json";
const MAX_MANIFEST_BYTES = 256 * 1024;
const RECHECK_MS = 600_000;
/** Failures are remembered for 5 s. */
const FORGOTTEN_MS = 5_001;
const OWNER = { username: "owner", password: "hunter2-right" };

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

describe("loader/http/breaker, through the loader", () => {
  it("who holds a request, and then sends it on, gives another registry no bad name", async () => {
    const victim = await rig.registry();
    const { manifestDigest } = victim.addModule("a/b", { wasm: WASM });
    const loading = rig.loader();
    victim.intercept(({ path }) => (path === "/slow" ? "hang" : "pass"));
    registry.intercept(() => {
      loading.advance(4_960);
      return sentOnTo(`${victim.url}/slow`);
    });

    const error = await failureOf(
      pull(loading, tagged(`${registry.authority}/x/y:v1`)),
    );
    const { bytes } = await pull(
      loading,
      pinned(`${victim.authority}/a/b`, manifestDigest),
    );

    expect(error.code).toBe("registry-unreachable");
    expect(bytes).toEqual(WASM);
    expect(victim.requests.map(({ path }) => path)).toContain(
      `/v2/a/b/manifests/${manifestDigest}`,
    );
  });
});

describe("loader/oci/images: what answers in the stead of a registry", () => {
  const page: Answer = {
    status: 200,
    headers: { "content-type": "text/html" },
    body: "<html>back soon</html>",
  };
  const answers = [
    { name: "a page for everything", answerTo: (): Answer => page },
    {
      name: "a page that is sent on to",
      answerTo: (path: string): Answer =>
        path === "/login"
          ? page
          : { status: 302, headers: { location: "/login" } },
    },
    {
      name: "a page with somebody else's digest",
      answerTo: (): Answer => ({
        ...page,
        headers: { "docker-content-digest": digestOf("another") },
      }),
    },
  ];

  it.each(answers)(
    "$name renews no proof, and gives nobody a private module",
    async ({ answerTo }) => {
      const { source, owner } = privateModule();
      const loading = rig.loader();
      await pull(loading, { ...source, credentials: "regcred" }, owner);
      let isReplaced = true;
      registry.intercept(({ path }) => (isReplaced ? answerTo(path) : "pass"));
      loading.advance(RECHECK_MS);
      const before = asked(registry).length;

      const ofOwner = await failureOf(
        pull(loading, { ...source, credentials: "regcred" }, owner),
      );
      const ofStranger = await failureOf(pull(loading, source));

      expect(ofOwner.code).toBe("digest-mismatch");
      expect(ofStranger.code).toBe("digest-mismatch");
      expect(asked(registry).slice(before, before + 2)).toEqual([
        "HEAD manifests",
        "GET manifests",
      ]);
      isReplaced = false;
      loading.advance(FORGOTTEN_MS);
      expect((await failureOf(pull(loading, source))).code).toBe(
        "registry-auth-failed",
      );
      await loading.loader.close();
      silence();
      const restarted = rig.loader();
      restarted.advance(RECHECK_MS + FORGOTTEN_MS);
      expect((await failureOf(pull(restarted, source))).code).toBe(
        "access-unproven",
      );
    },
  );

  it("who says with a HEAD that it is there, and asks for no credential, shows that to one puller only", async () => {
    const { source, owner } = privateModule();
    const own = { ...source, credentials: "regcred" };
    const first = rig.loader();
    await pull(first, own, owner);
    await first.loader.close();
    registry.intercept(({ method }) =>
      method === "HEAD"
        ? {
            status: 200,
            headers: { "docker-content-digest": String(source.ref.digest) },
          }
        : "pass",
    );
    // It does not know yet that the registry wants a credential.
    const loading = rig.loader();
    loading.advance(RECHECK_MS);

    expect((await pull(loading, own, owner)).bytes).toEqual(WASM);

    expect(registry.requests.at(-1)).toMatchObject({
      method: "HEAD",
      hasAuthorization: false,
    });
    expect((await failureOf(pull(loading, source))).code).toBe(
      "registry-auth-failed",
    );
    silence();
    const restarted = rig.loader();
    restarted.advance(RECHECK_MS);
    expect((await failureOf(pull(restarted, source))).code).toBe(
      "access-unproven",
    );
  });

  it.each(answers)(
    "$name does not show that a stranger's repository holds a private layer",
    async ({ answerTo }) => {
      const { source, owner } = privateModule("a/private");
      const loading = rig.loader();
      await pull(loading, { ...source, credentials: "regcred" }, owner);
      // Its manifest names the private layer, which it does not hold.
      const forged = registry.addModule("evil/x", { wasm: WASM });
      let isReplaced = false;
      registry.intercept(({ path }) => {
        if (isReplaced) return answerTo(path);
        return path.startsWith("/v2/evil/x/blobs/") ? { status: 404 } : "pass";
      });
      const evil = pinned(
        `${registry.authority}/evil/x`,
        forged.manifestDigest,
      );
      expect((await failureOf(pull(loading, evil))).code).toBe(
        "module-not-found",
      );
      loading.advance(FORGOTTEN_MS);
      isReplaced = true;

      expect(await outcomeOf(pull(loading, evil))).toBe("refused");

      isReplaced = false;
      loading.advance(FORGOTTEN_MS);
      expect(await outcomeOf(pull(loading, evil))).toBe("refused");
      await loading.loader.close();
      const restarted = rig.loader();
      restarted.advance(2 * FORGOTTEN_MS);
      expect(await outcomeOf(pull(restarted, evil))).toBe("refused");
    },
  );

  /** Only the owner may have what is in its repository; others are open to all. */
  function privateModule(repository = "a/b") {
    const { manifestDigest } = registry.addModule(repository, { wasm: WASM });
    const wanted = `Basic ${auth(OWNER.username, OWNER.password)}`;
    registry.intercept(({ path, headers }) =>
      path.startsWith(`/v2/${repository}/`) && headers.authorization !== wanted
        ? { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } }
        : "pass",
    );
    return {
      source: pinned(`${registry.authority}/${repository}`, manifestDigest),
      owner: regcred({ [registry.authority]: OWNER }),
    };
  }
});

describe("loader/oci/registry: a large manifest", () => {
  it("is taken up to 256 KiB", async () => {
    const source = padded(MAX_MANIFEST_BYTES);

    expect((await pull(rig.loader(), source)).bytes).toEqual(WASM);
  });

  it("is not begun when it says that it is larger", async () => {
    const error = await failureOf(
      pull(rig.loader(), padded(MAX_MANIFEST_BYTES + 1)),
    );

    expect(error.code).toBe("answer-too-large");
    expect(error.message).toMatch(
      /is too large, expected at most 262144 bytes, got 262145 bytes$/u,
    );
  });

  it("is broken off when it does not say so, and has no end", async () => {
    const chunk = Buffer.alloc(64 * 1024, " ");
    const body = (async function* () {
      for (;;) yield await Promise.resolve(chunk);
    })();
    registry.intercept(() => ({ status: 200, body }));

    const error = await failureOf(
      pull(rig.loader(), tagged(`${registry.authority}/a/b:v1`)),
    );

    expect(error.code).toBe("answer-too-large");
    expect(error.message).toMatch(/at most 262144 bytes, got more$/u);
  });

  /** A module whose manifest has so many bytes. */
  function padded(bytes: number) {
    const image = imageOf(WASM, registry);
    const missing = bytes - Buffer.byteLength(image);
    const digest = registry.addManifest(
      "a/b",
      Buffer.from(`${image}${" ".repeat(missing)}`),
    );
    return pinned(`${registry.authority}/a/b`, digest);
  }
});

it("loader/oci/images: one GET is enough to refuse an index to all who ask at once", async () => {
  registry.addManifest(
    "a/b",
    { schemaVersion: 2, mediaType: INDEX_TYPE, manifests: [] },
    "v1",
  );
  const loading = rig.loader();
  const source = tagged(`${registry.authority}/a/b:v1`);

  const errors = await Promise.all(
    Array.from({ length: 20 }, () => failureOf(pull(loading, source))),
  );

  const message = errors[0]?.message ?? "";
  expect(message).toContain("the reference leads to an image index");
  for (const error of errors)
    expect(error).toMatchObject({ code: "artifact-invalid", message });
  expect(asked(registry)).toEqual(["GET manifests"]);
});

describe("loader/http/redirects, through the loader: a server that gives no answer", () => {
  let tls: KeyPair;

  beforeAll(() => {
    const authorities = createCertificateAuthorities();
    authorities.authority("nobody's");
    tls = authorities.leaf({
      authority: "nobody's",
      altNames: "DNS:localhost",
    });
    authorities.remove();
  });

  const targets: readonly {
    name: string;
    start: () => Promise<{ url: string; authority: string }>;
  }[] = [
    {
      name: "nobody listens there",
      async start() {
        const gone = await rig.registry();
        await gone.stop();
        return gone;
      },
    },
    { name: "it hangs", start: () => reacting("hang") },
    { name: "it hangs up", start: () => reacting("drop") },
    {
      name: "its certificate is by nobody",
      start: () => rig.registry({ tls }),
    },
    {
      name: "it speaks no TLS",
      async start() {
        const { authority } = await rig.registry();
        return { authority, url: `https://${authority}` };
      },
    },
    {
      name: "it answers with a wrong protocol",
      async start() {
        const server = createServer();
        server.on("connection", (socket) => socket.end("SSH-2.0-x\r\n\r\n"));
        const authority = await listen(server);
        return { authority, url: `http://${authority}` };
      },
    },
  ];

  it.each(targets)(
    "is told in the same words when $name",
    async ({ start }) => {
      const target = await start();
      const loading = rig.loader();
      registry.intercept(() => {
        // There is time for one attempt only.
        loading.advance(4_850);
        return sentOnTo(`${target.url}/x`);
      });
      const source = pinned(`${registry.authority}/a/b`, digestOf("any"));

      const error = await failureOf(pull(loading, source));

      expect(error.message).toBe(
        `cannot resolve module: module OCI ${source.ref.text}: ${registry.authority} sent on to ${target.authority}, which could not be asked`,
      );
    },
  );

  it("is told in the same words by the one who asks next", async () => {
    const gone = await rig.registry();
    await gone.stop();
    const loading = rig.loader();
    registry.intercept(({ path }) => {
      // There is time for one attempt only.
      if (path.includes("/one/")) loading.advance(4_850);
      return sentOnTo(`${gone.url}/x`);
    });
    const messages: string[] = [];

    for (const name of ["one", "two"]) {
      const source = pinned(`${registry.authority}/a/${name}`, digestOf("any"));
      messages.push((await failureOf(pull(loading, source))).message);
    }

    for (const message of messages)
      expect(message).toMatch(
        new RegExp(`sent on to ${gone.authority}, which could not be asked$`),
      );
  });

  async function reacting(reaction: Reaction) {
    const target = await rig.registry();
    target.intercept(() => reaction);
    return target;
  }
});

describe("loader: other bytes where a registry sends on to", () => {
  // Of sizes that are no time in ms.
  const small = Buffer.from("crown of hunter2".repeat(625));
  const bodies = [
    { name: "a few", bytes: small, isLengthTold: true },
    {
      name: "a module's manifest",
      bytes: Buffer.from(imageOf(Buffer.from("another"), null).padEnd(12_345)),
      isLengthTold: true,
    },
    { name: "many", bytes: Buffer.alloc(307_201, "x"), isLengthTold: true },
    {
      name: "many of unknown length",
      bytes: Buffer.alloc(307_201, "x"),
      isLengthTold: false,
    },
  ];
  const kinds: readonly {
    what: string;
    part: (published: Published) => string;
    source: (published: Published) => ModuleSource;
  }[] = [
    {
      what: "a pinned manifest",
      part: () => "/manifests/",
      source: ({ manifestDigest, at }) => pinned(at, manifestDigest),
    },
    {
      what: "the manifest of a tag with an expectation",
      part: () => "/manifests/",
      source: ({ manifestDigest, at }) =>
        tagged(`${at}:v1`, { expectedDigest: manifestDigest }),
    },
    {
      what: "the layer of a module",
      part: ({ layerDigest }) => `/blobs/${layerDigest}`,
      source: ({ manifestDigest, at }) => pinned(at, manifestDigest),
    },
    {
      what: "the layer of a module's manifest",
      part: ({ manifestLayer }) => `/blobs/${manifestLayer}`,
      source: ({ manifestDigest, at }) => pinned(at, manifestDigest),
    },
  ];

  describe.each(kinds)("instead of $what", ({ part, source }) => {
    it.each(bodies)(
      "$name: neither digest nor size is told",
      async ({ bytes, isLengthTold }) => {
        const inside = await rig.registry();
        inside.intercept(() => ({
          status: 200,
          headers: {
            "content-type": MANIFEST_TYPE,
            "docker-content-digest": digestOf(bytes),
          },
          body: isLengthTold ? bytes : oneChunk(bytes),
        }));
        const published = publish();
        registry.intercept(({ method, path }) =>
          method === "GET" && path.includes(part(published))
            ? sentOnTo(`${inside.url}/x`)
            : "pass",
        );
        const loading = rig.loader();

        const error = await failureOf(pull(loading, source(published)));

        const said = [error.message, ...loading.lines.map(lineText)].join("\n");
        expect(inside.requests).not.toEqual([]);
        expect(said).not.toContain(digestOf(bytes).slice(-8));
        expect(said).not.toMatch(new RegExp(`\\b${bytes.length}\\b`, "u"));
        expect(said).not.toMatch(/crown|xxx/u);
      },
    );
  });

  interface Published {
    readonly at: string;
    readonly manifestDigest: Digest;
    readonly layerDigest: Digest;
    readonly manifestLayer: Digest;
  }

  function publish(): Published {
    const manifest = '{"a":1}';
    const { manifestDigest, layerDigest } = registry.addModule("a/b", {
      wasm: WASM,
      manifest,
      tag: "v1",
    });
    const at = `${registry.authority}/a/b`;
    const manifestLayer = digestOf(manifest);
    return { at, manifestDigest, layerDigest, manifestLayer };
  }
});

describe("loader/oci/tags: a tag that was refused", () => {
  it.each([
    { status: 400, code: "registry-refused" },
    { status: 401, code: "registry-auth-failed" },
    { status: 403, code: "registry-auth-failed" },
    { status: 404, code: "module-not-found" },
    { status: 410, code: "registry-refused" },
  ])(
    "with $status stays so in an outage, after a restart as well, until it is given again",
    async ({ status, code }) => {
      registry.addModule("a/b", { wasm: WASM, tag: "v1" });
      const source = tagged(`${registry.authority}/a/b:v1`);
      let state: "up" | "refusing" | "down" = "up";
      registry.intercept(() => {
        if (state === "up") return "pass";
        return state === "refusing" ? { status } : SILENCE;
      });
      const first = rig.loader();
      const { manifestDigest } = await pull(first, source);
      const expecting = { ...source, expectedDigest: manifestDigest };

      state = "refusing";
      expect((await failureOf(pull(first, source))).code).toBe(code);
      state = "down";
      const ofFirst = await failureOf(pull(first, source));
      await first.loader.close();
      const second = rig.loader();
      const ofSecond = await failureOf(pull(second, source));
      const ofExpecting = await failureOf(pull(second, expecting));

      for (const error of [ofFirst, ofSecond, ofExpecting]) {
        expect(error.code).toBe("registry-unreachable");
        expect(error.message).toMatch(/; when it last answered, it refused$/u);
      }
      state = "up";
      second.advance(FORGOTTEN_MS);
      await pull(second, source);
      state = "down";
      expect((await pull(second, source)).bytes).toEqual(WASM);
      await second.loader.close();
      const third = rig.loader();
      expect((await pull(third, source)).bytes).toEqual(WASM);
      expect((await pull(third, expecting)).bytes).toEqual(WASM);
    },
  );

  it("is refused to nobody but who was refused", async () => {
    registry.addModule("a/b", { wasm: WASM, tag: "v1" });
    const source = tagged(`${registry.authority}/a/b:v1`);
    const mine = { ...source, credentials: "regcred" };
    const me = regcred({ [registry.authority]: OWNER });
    let isDown = false;
    const first = rig.loader();
    await pull(first, source);
    registry.intercept(({ hasAuthorization, path }) => {
      if (isDown) return SILENCE;
      if (!hasAuthorization && path.includes("/manifests/"))
        return {
          status: 401,
          headers: { "www-authenticate": 'Basic realm="r"' },
        };
      return "pass";
    });
    expect((await failureOf(pull(first, source))).code).toBe(
      "registry-auth-failed",
    );
    await pull(first, mine, me);
    await first.loader.close();
    isDown = true;

    const second = rig.loader();

    expect((await failureOf(pull(second, source))).code).toBe(
      "registry-unreachable",
    );
    expect((await pull(second, mine, me)).bytes).toEqual(WASM);
  });
});

describe("loader/oci/layer-access: a manifest that gives a layer the wrong size", () => {
  const MANIFEST = '{"a":1}';

  it.each([
    { what: "a module", tarBytes: null, spoiled: "module" },
    {
      what: "a packed module",
      tarBytes: tar({ name: "fn.wasm", data: WASM }),
      spoiled: "module",
    },
    { what: "a module's manifest", tarBytes: null, spoiled: "manifest" },
  ] as const)(
    "does not make the pull of $what fail that has the right one",
    async ({ tarBytes, spoiled }) => {
      const victim = registry.addModule("a/b", {
        wasm: WASM,
        manifest: MANIFEST,
        ...(tarBytes !== null && { tar: tarBytes }),
      });
      const forged = registry.addManifest("a/b", spoil(victim.manifestDigest));
      const at = `${registry.authority}/a/b`;
      const loading = rig.loader();

      const failure = await failureOf(pull(loading, pinned(at, forged)));
      const { bytes, manifest } = await pull(
        loading,
        pinned(at, victim.manifestDigest),
      );

      expect(failure.code).toBe("answer-too-large");
      expect({ bytes, manifest }).toEqual({ bytes: WASM, manifest: MANIFEST });

      function spoil(digest: Digest) {
        const image = JSON.parse(imageBytes(digest)) as {
          layers: { size: number }[];
        };
        const at = spoiled === "module" ? 0 : 1;
        const layers = image.layers.map((layer, i) =>
          i === at ? { ...layer, size: 1 } : layer,
        );
        return { ...image, layers };
      }

      function imageBytes(digest: Digest): string {
        const layer = (mediaType: string, content: Uint8Array | string) => ({
          mediaType,
          digest: digestOf(content),
          size: Buffer.byteLength(content),
        });
        const image = {
          schemaVersion: 2,
          mediaType: MANIFEST_TYPE,
          config: layer("application/vnd.wasm.config.v0+json", "{}"),
          layers: [
            tarBytes === null
              ? layer("application/wasm", WASM)
              : layer("application/vnd.oci.image.layer.v1.tar", tarBytes),
            layer("application/vnd.wasmfn.manifest.v1+json", MANIFEST),
          ],
        };
        const text = JSON.stringify(image);
        expect(digestOf(text)).toBe(digest);
        return text;
      }
    },
  );
});

describe("loader/oci/tags: a warning", () => {
  it("comes again until it was said, and then no more", async () => {
    registry.addModule("a/b", { wasm: WASM, tag: "v1" });
    const source = tagged(`${registry.authority}/a/b:v1`);
    const loading = rig.loader();
    await pull(loading, source);
    silence();

    const first = await warningOf(loading, source);
    const second = await warningOf(loading, source);
    const third = await warningOf(loading, source);
    // Whoever was told says it for all.
    second?.said();
    const after = await warningOf(loading, source);

    for (const warning of [first, second, third])
      expect(warning?.text).toMatch(/HTTP 503 .*; using sha256:/u);
    expect(after).toBeNull();
    const warned = loading.lines.filter(({ level }) => level === "warn");
    expect(warned).toHaveLength(1);
  });

  async function warningOf({ loader }: TestLoader, source: ModuleSource) {
    const context: PullContext = {
      credentialOf: () => null,
      redirectFence: null,
    };
    return (await loader.resolve(source, context, openScope())).warning;
  }
});

it("loader/oci/tags: --tag-resolve-interval: an answer is not used again for a step that expects another digest", async () => {
  const source = tagged(`${registry.authority}/a/b:v1`);
  const first = registry.addModule("a/b", { wasm: WASM, tag: "v1" });
  const loading = rig.loader({
    tags: { resolveIntervalMs: 60_000, maxStalenessMs: 0 },
  });
  await pull(loading, source);
  const moved = Buffer.from("\0asm\x01\0\0\0 moved");
  const second = registry.addModule("a/b", { wasm: moved, tag: "v1" });

  const { bytes } = await pull(loading, {
    ...source,
    expectedDigest: second.manifestDigest,
  });
  const refused = await failureOf(
    pull(loading, { ...source, expectedDigest: first.manifestDigest }),
  );

  expect(bytes).toEqual(moved);
  expect(refused.code).toBe("expected-digest-mismatch");
  expect(
    asked(registry).filter((each) => each === "GET manifests"),
  ).toHaveLength(3);
});

/** It asks for so long a pause that nothing is tried again. */
const SILENCE: Answer = { status: 503, headers: { "retry-after": "61" } };

/** From now on nobody answers. */
function silence(): void {
  registry.intercept(() => SILENCE);
}

function sentOnTo(location: string): Answer {
  return { status: 307, headers: { location } };
}

/** The text of a manifest of one module; `null` = its blobs are nowhere. */
function imageOf(wasm: Uint8Array, at: ScriptedRegistry | null): string {
  const layer = (mediaType: string, content: Uint8Array) => {
    at?.addBlob(content);
    return { mediaType, digest: digestOf(content), size: content.length };
  };
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: MANIFEST_TYPE,
    config: layer("application/vnd.wasm.config.v0+json", Buffer.from("{}")),
    layers: [layer("application/wasm", wasm)],
  });
}

async function outcomeOf(
  pulling: Promise<unknown>,
): Promise<"given" | "refused"> {
  return await pulling.then(
    () => "given" as const,
    () => "refused" as const,
  );
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield await Promise.resolve(bytes);
}

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function lineText(line: TestLoader["lines"][number]): string {
  return JSON.stringify(line);
}

function digestOf(content: string | Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(content).digest("hex")}`;
}
