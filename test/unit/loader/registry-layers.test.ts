import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
} from "vitest";
import type { Digest } from "../../../src/ports.js";
import type { Answer } from "../../support/registry-exchange.js";
import type { ScriptedRegistry } from "../../support/scripted-registry.js";
import {
  createCertificateAuthorities,
  type CertificateAuthorities,
} from "./http/certificates.js";
import { pinned, tagged } from "./loading.js";
import { tar, type WrittenEntry } from "./oci/tar-writer.js";
import { rawBlock, storedZstd, zstdFrame } from "./oci/zstd-writer.js";
import {
  asked,
  auth,
  createRig,
  failureOf,
  filesIn,
  pull,
  regcred,
  type Rig,
  WASM,
} from "./pulling.js";

const MIB = 1024 * 1024;
const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";
const MODULE_MANIFEST = "application/vnd.wasmfn.manifest.v1+json";
const TAR = "application/vnd.oci.image.layer.v1.tar";
const ACCEPTED =
  "expected a layer of type application/wasm, application/vnd.wasm.content.layer.v1+wasm, application/vnd.module.wasm.content.layer.v1+wasm, or as the only layer application/vnd.oci.image.layer.v1.tar, application/vnd.oci.image.layer.v1.tar+gzip, application/vnd.oci.image.layer.v1.tar+zstd, application/vnd.docker.image.rootfs.diff.tar, application/vnd.docker.image.rootfs.diff.tar.gzip, application/vnd.docker.image.rootfs.diff.tar.zstd";
const ZEROS: WrittenEntry = { name: "zeros", data: Buffer.alloc(MIB) };
const FN: WrittenEntry = { name: "fn.wasm", data: WASM };

let rig: Rig;
let registry: ScriptedRegistry;

beforeEach(async () => {
  rig = createRig();
  registry = await rig.registry();
});

afterEach(() => rig.close());

/** Publishes a module with a manifest as `a/b:v1`. */
function publish(at = registry) {
  const manifestBytes = imageOf(
    [
      { type: "application/wasm", bytes: WASM },
      { type: MODULE_MANIFEST, bytes: Buffer.from("{}") },
    ],
    { at },
  );
  const manifestDigest = at.addManifest("a/b", manifestBytes, "v1");
  return {
    manifestBytes,
    manifestDigest,
    pinned: pinned(`${at.authority}/a/b`, manifestDigest),
    tagged: tagged(`${at.authority}/a/b:v1`),
  };
}

interface Layer {
  readonly type: string;
  readonly bytes: Uint8Array;
}

/** An image manifest, whose blobs are published. */
function imageOf(
  layers: readonly Layer[],
  {
    at = registry,
    configType = "application/vnd.wasm.config.v0+json",
  }: { at?: ScriptedRegistry; configType?: string },
): Buffer {
  const describe = ({ type, bytes }: Layer) => ({
    mediaType: type,
    digest: at.addBlob(bytes),
    size: bytes.length,
  });
  const image = {
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    config: describe({ type: configType, bytes: Buffer.from("{}") }),
    layers: layers.map(describe),
  };
  return Buffer.from(JSON.stringify(image));
}

/** Publishes an artifact with these layers; pinned. */
function artifact(layers: readonly Layer[], configType?: string) {
  const bytes = imageOf(layers, configType === undefined ? {} : { configType });
  const digest = registry.addManifest("a/b", bytes);
  return pinned(`${registry.authority}/a/b`, digest);
}

function packed(bytes: Uint8Array, type = TAR) {
  return artifact([{ type, bytes }]);
}

/** Answers the GETs of one kind with these, one after the other, then as usual. */
function answerGets(
  kind: "manifests" | "blobs" | "token",
  ...answers: readonly (Answer | "drop")[]
): void {
  const left = [...answers];
  registry.intercept(({ method, path }) => {
    const isWanted = method === "GET" && path.includes(`/${kind}`);
    return (isWanted ? left.shift() : undefined) ?? "pass";
  });
}

function count(kind: string, at = registry): number {
  return asked(at).filter((each) => each === kind).length;
}

function digestOf(bytes: Uint8Array): Digest {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Bytes without an end, and how many were taken. */
function endless(byte = " ") {
  const chunk = Buffer.alloc(64 * 1024, byte);
  const sent = { bytes: 0 };
  const body = (async function* () {
    for (;;) {
      sent.bytes += chunk.length;
      yield await Promise.resolve(chunk);
    }
  })();
  return { body, sent };
}

/** Names of what is stored of modules and manifests; other files have no content of theirs. */
async function stored(): Promise<readonly string[]> {
  const files = await filesIn(rig.cacheDir);
  return [...files.keys()].filter((name) => /^(?:blobs|manifests)/u.test(name));
}

function names(digest: Digest): string {
  return `cannot resolve module: module OCI ${registry.authority}/a/b@${digest}: `;
}

describe("loader/registry-layers: the protocol", () => {
  it("[C17] [W5] waits as long as a 429 asks, once", async () => {
    const { pinned: source } = publish();
    answerGets("manifests", { status: 429, headers: { "retry-after": 1 } });
    const startedAtMs = performance.now();

    const { bytes } = await pull(rig.loader(), source);

    expect(bytes).toEqual(WASM);
    expect(performance.now() - startedAtMs).toBeGreaterThan(950);
    expect(count("GET manifests")).toBe(2);
  });

  it.each(["pinned", "tagged"] as const)(
    "[C17] says when to come back where that is too late: %s",
    async (kind) => {
      const source = publish()[kind];
      const later = { status: 429, headers: { "retry-after": 30 } };
      answerGets("manifests", later, later);

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe("registry-unreachable");
      expect(error.message).toContain(
        `: ${registry.authority}: HTTP 429 Too Many Requests, asks to wait 30 s`,
      );
      expect(count("GET manifests")).toBe(1);
    },
  );

  it("[W5] tries again after a 503 and a broken connection", async () => {
    const { pinned: source } = publish();
    answerGets("manifests", { status: 503 }, "drop");

    const { bytes } = await pull(rig.loader(), source);

    expect(bytes).toEqual(WASM);
    expect(count("GET manifests")).toBe(3);
  });

  it("[W5] gives up after three attempts, and says why", async () => {
    const { pinned: source } = publish();
    const busy = {
      status: 503,
      body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"busy"}]}',
    };
    answerGets("manifests", busy, busy, busy, busy);

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.message).toContain(
      `: ${registry.authority}: HTTP 503 Service Unavailable: TOOMANYREQUESTS: busy`,
    );
    expect(count("GET manifests")).toBe(3);
  });

  describe("[C18] needs no Docker-Content-Digest", () => {
    it.each([
      { name: "none", headers: {} },
      { name: "an empty one", headers: { "docker-content-digest": "" } },
      {
        name: "one of another algorithm",
        headers: { "docker-content-digest": `sha512:${"0".repeat(128)}` },
      },
    ])("$name", async ({ headers }) => {
      const published = publish();
      const { manifestDigest, manifestBytes: body } = published;
      registry.intercept(({ path }) =>
        path.includes("/manifests/")
          ? {
              status: 200,
              headers: { "content-type": OCI_MANIFEST, ...headers },
              body,
            }
          : "pass",
      );

      const pulled = [
        await pull(rig.loader(), published.tagged),
        await pull(
          rig.loader({ cacheDir: rig.directory("other") }),
          published.pinned,
        ),
      ];

      for (const each of pulled)
        expect(each).toMatchObject({ bytes: WASM, manifestDigest });
    });
  });

  it("[C19] keeps nothing of a manifest with other bytes", async () => {
    const { pinned: source, manifestDigest, manifestBytes } = publish();
    const body = Buffer.concat([manifestBytes, Buffer.from(" ")]);
    registry.intercept(({ path }) =>
      path.includes("/manifests/")
        ? {
            status: 200,
            headers: {
              "content-type": OCI_MANIFEST,
              "docker-content-digest": manifestDigest,
            },
            body,
          }
        : "pass",
    );

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("digest-mismatch");
    expect(error.message.startsWith(names(manifestDigest))).toBe(true);
    expect(error.message).toContain(digestOf(body));
    expect(await stored()).toEqual([]);
    expect(asked(registry)).toEqual(["GET manifests"]);
  });

  it("[C19] keeps nothing of a manifest that its registry calls by another digest", async () => {
    const { tagged: source, manifestDigest, manifestBytes: body } = publish();
    const claimed = `sha256:${"1".repeat(64)}`;
    registry.intercept(({ path }) =>
      path.includes("/manifests/")
        ? { status: 200, headers: { "docker-content-digest": claimed }, body }
        : "pass",
    );

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("digest-mismatch");
    expect(error.message).toContain(
      `: ${registry.authority} calls the manifest ${claimed}, its bytes are ${manifestDigest}`,
    );
    expect(await stored()).toEqual([]);
  });

  it("[C19] keeps nothing of a blob with other bytes", async () => {
    const { pinned: source, manifestDigest } = publish();
    const body = Buffer.from(WASM);
    body.write("A MODULE", 9);
    answerGets("blobs", { status: 200, body });

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("digest-mismatch");
    expect(error.message).toBe(
      `${names(manifestDigest)}expected ${digestOf(WASM)}, got ${digestOf(body)}`,
    );
    expect(count("GET blobs")).toBe(1);
    const files = await stored();
    expect(files.filter((name) => name.startsWith("blobs"))).toEqual([]);
  });

  it("[C19] keeps nothing of a module's manifest with other bytes", async () => {
    const { pinned: source } = publish();
    answerGets(
      "blobs",
      { status: 200, body: WASM },
      { status: 200, body: "[]" },
    );

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("digest-mismatch");
    expect(error.message).toContain(
      `: its manifest: expected ${digestOf(Buffer.from("{}"))}, got ${digestOf(Buffer.from("[]"))}`,
    );
    const files = [...(await filesIn(rig.cacheDir)).values()];
    expect(files.map(String)).not.toContain("[]");
  });

  describe("[C20] [W4] reads nothing without end", () => {
    it.each(["pinned", "tagged"] as const)("a manifest, %s", async (kind) => {
      const source = publish()[kind];
      const { body, sent } = endless();
      answerGets("manifests", { status: 200, body });

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe("answer-too-large");
      expect(error.message).toContain(
        `: the manifest of ${registry.authority}/a/b is too large, expected at most ${256 * 1024} bytes, got more`,
      );
      expect(sent.bytes).toBeLessThan(32 * MIB);
      expect(await stored()).toEqual([]);
    });

    it("a manifest that says how long it is", async () => {
      const { pinned: source } = publish();
      answerGets("manifests", {
        status: 200,
        headers: { "content-length": 5 * MIB },
        body: "{",
        ending: "hang",
      });

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.message).toContain(
        `expected at most ${256 * 1024} bytes, got ${5 * MIB} bytes`,
      );
    });

    it("what a registry says of an error", async () => {
      const { pinned: source } = publish();
      const { body, sent } = endless("x");
      answerGets("manifests", { status: 400, body });

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe("registry-refused");
      expect(error.message).toMatch(/HTTP 400 Bad Request$/u);
      expect(sent.bytes).toBeLessThan(16 * MIB);
    });

    it("a token", async () => {
      const { pinned: source } = publish();
      registry.requireBearer(null);
      const { body, sent } = endless();
      answerGets("token", { status: 200, body });

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe("answer-too-large");
      expect(error.message).toContain(
        `: ${registry.authority}: the answer to the request for a token is too large, expected at most ${64 * 1024} bytes, got more`,
      );
      expect(sent.bytes).toBeLessThan(16 * MIB);
    });

    it("a blob", async () => {
      const { pinned: source } = publish();
      const { body, sent } = endless();
      answerGets("blobs", { status: 200, body });

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe("answer-too-large");
      expect(error.message).toContain(
        `: the blob ${digestOf(WASM)} is too large, expected at most ${WASM.length} bytes, got more`,
      );
      expect(sent.bytes).toBeLessThan(16 * MIB);
    });
  });

  it.each([
    OCI_INDEX,
    "application/vnd.docker.distribution.manifest.list.v2+json",
  ])("[C21] names an index and what is in it: %s", async (mediaType) => {
    const { manifestDigest } = publish();
    const platform = { os: "wasip1", architecture: "wasm" };
    const index = registry.addManifest("a/b", {
      schemaVersion: 2,
      mediaType,
      manifests: [
        { mediaType: OCI_MANIFEST, digest: manifestDigest, size: 1, platform },
      ],
    });

    const error = await failureOf(
      pull(rig.loader(), pinned(`${registry.authority}/a/b`, index)),
    );

    expect(error.code).toBe("artifact-invalid");
    expect(error.message).toBe(
      `${names(index)}the reference leads to an image index (${mediaType}), expected an image manifest: pin the digest of one manifest in it: ${manifestDigest} (wasip1/wasm)`,
    );
  });

  it("[C23] says that a 204 is no manifest", async () => {
    const { pinned: source, manifestDigest } = publish();
    answerGets("manifests", { status: 204 });

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("registry-refused");
    expect(error.message).toBe(
      `${names(manifestDigest)}${registry.authority}: HTTP 204 No Content`,
    );
  });

  describe("[C37] a blob that does not come whole", () => {
    const part = WASM.subarray(0, WASM.length * 0.6);
    const cuts: { name: string; answer: Answer }[] = [
      {
        name: "is cut",
        answer: {
          status: 200,
          headers: { "content-length": WASM.length },
          body: part,
          ending: "drop",
        },
      },
      {
        name: "is cut and has no length",
        answer: { status: 200, body: part, ending: "drop" },
      },
    ];

    it.each(cuts)("that $name is fetched once more", async ({ answer }) => {
      const { pinned: source } = publish();
      answerGets("blobs", answer);

      const { bytes } = await pull(rig.loader(), source);

      expect(bytes).toEqual(WASM);
      // One of them of the module's manifest.
      expect(count("GET blobs")).toBe(3);
    });

    it.each(cuts)(
      "that $name twice is not there at all",
      async ({ answer }) => {
        const { pinned: source, manifestDigest } = publish();
        answerGets("blobs", answer, answer, answer);

        const error = await failureOf(pull(rig.loader(), source));

        expect(error.code).toBe("registry-unreachable");
        expect(
          error.message.startsWith(
            `${names(manifestDigest)}${registry.authority}: the answer ended early`,
          ),
          error.message,
        ).toBe(true);
        expect(count("GET blobs")).toBe(2);
        const files = await stored();
        expect(files.filter((name) => name.startsWith("blobs"))).toEqual([]);
      },
    );

    it.each<{ name: string; answer: Answer; code: string }>([
      {
        name: "that ends well, but too early",
        answer: { status: 200, body: Readable.from([part]) },
        code: "digest-mismatch",
      },
      {
        name: "cut off by its own length",
        answer: {
          status: 200,
          headers: { "content-length": part.length },
          body: part,
        },
        code: "digest-mismatch",
      },
      {
        name: "longer than its descriptor says",
        answer: { status: 200, body: Buffer.concat([WASM, WASM]) },
        code: "answer-too-large",
      },
    ])("$name is refused at once", async ({ answer, code }) => {
      const { pinned: source } = publish();
      answerGets("blobs", answer);

      const error = await failureOf(pull(rig.loader(), source));

      expect(error.code).toBe(code);
      expect(count("GET blobs")).toBe(1);
      const files = await stored();
      expect(files.filter((name) => name.startsWith("blobs"))).toEqual([]);
    });
  });

  it("[C38] a hundred requests pull once, and none does after a restart", async () => {
    const { pinned: source } = publish();
    const moduleDigest = digestOf(WASM);
    const loading = rig.loader();

    const pulled = await Promise.all(
      Array.from({ length: 100 }, () => pull(loading, source)),
    );

    for (const { bytes, digest } of pulled)
      expect([bytes, digest]).toEqual([WASM, moduleDigest]);
    const blobsOf = (digest: Digest) =>
      registry.requests
        .filter(({ path }) => path.endsWith(`/blobs/${digest}`))
        .map(({ method }) => method);
    expect(count("GET manifests")).toBe(1);
    expect(blobsOf(moduleDigest)).toEqual(["GET"]);
    expect(blobsOf(digestOf(Buffer.from("{}")))).toEqual(["GET"]);
    const before = registry.requests.length;
    expect(before).toBe(3);

    const again = await pull(rig.loader(), source);

    expect(again).toEqual(pulled[0]);
    expect(registry.requests).toHaveLength(before);

    await registry.stop();
    expect(await pull(rig.loader(), source)).toEqual(pulled[0]);
  });

  it("[C38] is asked for again where what was stored is damaged", async () => {
    const { pinned: source } = publish();
    const { manifest, ...first } = await pull(rig.loader(), source);
    const blobs = (await stored()).filter((name) => name.startsWith("blobs"));
    expect(blobs).toHaveLength(1);
    rig.file(`cache/${blobs[0] ?? ""}`, "\0asm\x01\0\0\0 anything");

    const second = await pull(rig.loader(), source);

    expect(second).toEqual({ manifest, ...first });
    expect(count("GET blobs")).toBe(3);
  });
});

describe("loader/registry-layers: layers", () => {
  it("[C24] lists the types seen and those accepted", async () => {
    const source = artifact([
      { type: "application/octet-stream", bytes: WASM },
      { type: 'text/plain"\u202e', bytes: Buffer.from("x") },
    ]);

    const error = await failureOf(pull(rig.loader(), source));

    expect(error.code).toBe("artifact-invalid");
    expect(
      error.message.endsWith(
        `: no layer is a module: got "application/octet-stream", "text/plain\\"\\u202e", ${ACCEPTED}`,
      ),
      error.message,
    ).toBe(true);
    expect(count("GET blobs") + count("HEAD blobs")).toBe(0);
  });

  it("[C24] finds the module wherever it is", async () => {
    const source = artifact([
      { type: "application/octet-stream", bytes: Buffer.from("one") },
      { type: TAR, bytes: tar({ name: "fn.wasm", data: "two" }) },
      { type: "application/wasm", bytes: WASM },
    ]);

    expect((await pull(rig.loader(), source)).bytes).toEqual(WASM);
  });

  it.each([
    "application/vnd.oci.empty.v1+json",
    "application/vnd.wasm.config.v0+json",
    "application/vnd.wasm.config.v1+json",
    "application/vnd.oci.image.config.v1+json",
    "application/vnd.anybody.config",
  ])("[C25] takes an artifact with a config of type %s", async (config) => {
    const source = artifact(
      [{ type: "application/wasm", bytes: WASM }],
      config,
    );

    expect((await pull(rig.loader(), source)).bytes).toEqual(WASM);
  });

  it("[C26] unpacks zstd", async () => {
    const layer = storedZstd(tar(FN));

    const { bytes } = await pull(rig.loader(), packed(layer, `${TAR}+zstd`));

    expect(bytes).toEqual(WASM);
  });

  it("[C26] refuses a zstd window of 2 GiB", async () => {
    const layer = zstdFrame([rawBlock(tar(FN), true)], 21 << 3);

    const error = await failureOf(
      pull(rig.loader(), packed(layer, `${TAR}+zstd`)),
    );

    expect(error.code).toBe("artifact-invalid");
    expect(error.message).toContain(String(2 ** 31));
  });

  it.each([
    { type: `${TAR}+gzip`, name: "plain", bytes: tar(FN) },
    { type: TAR, name: "gzip", bytes: gzipSync(tar(FN)) },
    { type: `${TAR}+zstd`, name: "gzip", bytes: gzipSync(tar(FN)) },
    { type: `${TAR}+gzip`, name: "zstd", bytes: storedZstd(tar(FN)) },
  ])("[C27] goes by the bytes: $type, but $name", async ({ type, bytes }) => {
    const pulled = await pull(rig.loader(), packed(bytes, type));

    expect(pulled.bytes).toEqual(WASM);
    expect(pulled.digest).toBe(digestOf(WASM));
  });

  it("[C27] names a bare module that is called a tar archive", async () => {
    const error = await failureOf(pull(rig.loader(), packed(WASM)));

    expect(error.code).toBe("artifact-invalid");
    expect(error.message).toContain(
      ": the layer is a bare wasm binary, but its media type says tar archive",
    );
  });

  it.each(["fn.wasm", "./fn.wasm", "/fn.wasm"])(
    "[C28] the module is %s",
    async (name) => {
      const layer = tar({ name: "fn.wasm.txt", data: "no" }, { ...FN, name });

      expect((await pull(rig.loader(), packed(layer))).bytes).toEqual(WASM);
    },
  );

  it.each<WrittenEntry & { want?: string }>([
    { name: "../../fn.wasm", data: WASM },
    { name: ".fn.wasm", data: WASM },
    { name: "...//fn.wasm", data: WASM },
    { name: "//fn.wasm", data: WASM },
    { name: "././fn.wasm", data: WASM },
    { name: "a/../fn.wasm", data: WASM },
    { name: "a/fn.wasm", data: WASM },
    { name: "FN.WASM", data: WASM },
    { name: "fn.wasm ", data: WASM },
    {
      name: "fn.wasm",
      typeflag: "2",
      linkName: "/etc/passwd",
      want: "symbolic link",
    },
    {
      name: "fn.wasm",
      typeflag: "1",
      linkName: "/etc/passwd",
      want: "hard link",
    },
    { name: "fn.wasm", typeflag: "5", want: "directory" },
    { name: "fn.wasm", typeflag: "3", want: "device" },
    { name: "fn.wasm", typeflag: "6", want: "FIFO" },
  ])(
    "[C28] [W6] the module is not $name ($typeflag)",
    async ({ want, ...entry }) => {
      const layer = tar(entry);

      const error = await failureOf(pull(rig.loader(), packed(layer)));

      expect(error.code).toBe("artifact-invalid");
      expect(error.message).toContain(
        want === undefined
          ? `: the layer has no module: expected a regular file fn.wasm or ./fn.wasm or /fn.wasm, got "${entry.name}"`
          : `: "fn.wasm" in the layer is a ${want}`,
      );
      const blobs = (await stored()).filter((name) => name.startsWith("blobs"));
      expect(blobs).toEqual([`blobs/${digestOf(layer).replace(":", "-")}`]);
    },
  );

  it.each([
    { first: FN, second: { name: "fn.wasm", data: "\0asm hostile" } },
    { first: { name: "./fn.wasm", data: "\0asm hostile" }, second: FN },
    { first: FN, second: { name: "/fn.wasm", typeflag: "5" } },
  ])(
    "[C29] refuses a layer with two modules: $first.name, $second.name",
    async ({ first, second }) => {
      const layer = tar(first, { name: "between", data: "x" }, second);

      const error = await failureOf(pull(rig.loader(), packed(layer)));

      expect(error.code).toBe("artifact-invalid");
      expect(error.message).toContain(
        `: the layer has more than one module: "${first.name}" and "${second.name}"`,
      );
      const blobs = (await stored()).filter((name) => name.startsWith("blobs"));
      expect(blobs).toEqual([`blobs/${digestOf(layer).replace(":", "-")}`]);
    },
  );

  it.each<{ name: string; layer: () => Buffer; want: RegExp }>([
    {
      name: "gzip of many zeros before the module",
      layer: () => gzipSync(tar(...Array<WrittenEntry>(16).fill(ZEROS), FN)),
      want: /: the layer expands to more than 8388608 bytes, which is as far as it is read$/u,
    },
    {
      name: "gzip of many zeros after the module",
      layer: () => gzipSync(tar(FN, ...Array<WrittenEntry>(16).fill(ZEROS))),
      want: /: the layer expands to more than 8388608 bytes, which is as far as it is read$/u,
    },
    {
      name: "gzip of zeros in one file",
      layer: () => gzipSync(tar({ ...ZEROS, data: Buffer.alloc(9 * MIB) }, FN)),
      want: /has an entry "zeros" of 9437184 bytes, at most 8388608 are read$/u,
    },
    {
      name: "a module above --max-module-size",
      layer: () => gzipSync(tar({ ...FN, data: Buffer.alloc(MIB + 1) })),
      want: /"fn\.wasm" in the layer has 1048577 bytes, --max-module-size allows 1048576$/u,
    },
    {
      name: "a header that claims 8 GiB",
      layer: () => tar({ ...FN, sizeField: "77777777777\0" }),
      want: /has an entry "fn\.wasm" of 8589934591 bytes, at most 8388608 are read$/u,
    },
    {
      name: "a header that claims 8 GiB for another file",
      layer: () => tar({ name: "other", sizeField: "77777777777\0" }, FN),
      want: /has an entry "other" of 8589934591 bytes, at most 8388608 are read$/u,
    },
    {
      name: "a negative size in base 256",
      layer: () => tar({ ...FN, sizeField: "\xff".repeat(12) }),
      want: /whose size is not written in octal digits$/u,
    },
    {
      name: "a sparse file of GNU's",
      layer: () => tar({ ...FN, typeflag: "S", magic: "ustar  \0" }),
      want: /has an entry "fn\.wasm" of type "S", a sparse file$/u,
    },
    {
      name: "a layer that ends in the module",
      layer: () => tar(FN).subarray(0, 520),
      want: /: the layer's tar archive is cut short$/u,
    },
  ])("[C30] bounds the work for $name", async ({ layer, want }) => {
    const bytes = layer();

    const error = await failureOf(pull(rig.loader(), packed(bytes)));

    expect(["artifact-invalid", "module-too-large"]).toContain(error.code);
    expect(error.message).toMatch(want);
    const blobs = (await stored()).filter((name) => name.startsWith("blobs"));
    expect(blobs).toEqual([`blobs/${digestOf(bytes).replace(":", "-")}`]);
  });

  it("[C30] asks for no layer above --max-module-size", async () => {
    const loading = rig.loader({ maxModuleBytes: WASM.length - 1 });

    const error = await failureOf(pull(loading, publish().pinned));

    expect(error.code).toBe("module-too-large");
    expect(error.message).toContain(
      `: its layer has ${WASM.length} bytes, --max-module-size allows ${WASM.length - 1}`,
    );
    expect(count("GET blobs")).toBe(0);
  });
});

describe("loader/registry-layers: TLS", () => {
  const altNames = "DNS:localhost";
  let authorities: CertificateAuthorities;
  let caPem: string;
  let otherCaPem: string;
  let tls: { readonly cert: string; readonly key: string };

  beforeAll(() => {
    authorities = createCertificateAuthorities();
    caPem = authorities.authority("one");
    otherCaPem = authorities.authority("other");
    tls = authorities.leaf({ authority: "one", altNames });
  });

  afterAll(() => authorities.remove());

  it("[C35] trusts a CA for its own host only, and speaks TLS there, loopback or not", async () => {
    const own = await rig.registry({ tls });
    const other = await rig.registry({ tls });
    const loading = rig.loader({
      registryCas: new Map([
        [own.authority, caPem],
        [other.authority, otherCaPem],
      ]),
    });

    const { bytes } = await pull(loading, publish(own).pinned);
    const error = await failureOf(pull(loading, publish(other).pinned));

    expect(bytes).toEqual(WASM);
    expect(error.code).toBe("tls-failed");
    expect(error.message).toContain(
      `: ${other.authority}: the TLS certificate does not verify, --registry-ca names a CA to trust for this host`,
    );
    expect(other.requests).toEqual([]);
  });

  it("[C35] a CA for a host is for all its ports", async () => {
    const own = await rig.registry({ tls });

    const { bytes } = await pull(
      rig.loader({ registryCas: new Map([["localhost", caPem]]) }),
      publish(own).pinned,
    );

    expect(bytes).toEqual(WASM);
  });

  it.each([
    { name: "another registry", hosts: (): string[] => [registry.authority] },
    { name: "this very registry", hosts: (own: string) => [own, "localhost"] },
  ])(
    "[C34] no certificate is let pass because $name is insecure",
    async ({ hosts }) => {
      const own = await rig.registry({ tls });
      const loading = rig.loader({
        insecureHosts: hosts(own.authority),
        registryCas: new Map([[own.authority, otherCaPem]]),
      });

      const error = await failureOf(pull(loading, publish(own).pinned));

      expect(error.code).toBe("tls-failed");
      expect(own.requests).toEqual([]);
    },
  );

  it("[C08] goes from https to no http", async () => {
    const own = await rig.registry({ tls });
    const { pinned: source } = publish(own);
    own.intercept(({ method, path }) =>
      method === "GET" && path.includes("/blobs/")
        ? {
            status: 307,
            headers: { location: `${registry.url}/blob?sig=hunter2` },
          }
        : "pass",
    );
    const loading = rig.loader({
      registryCas: new Map([[own.authority, caPem]]),
    });

    const error = await failureOf(pull(loading, source));

    expect(error.code).toBe("redirect-refused");
    expect(
      error.message.endsWith(
        `: ${own.authority}: redirect from https to ${registry.url}/blob`,
      ),
      error.message,
    ).toBe(true);
    expect(registry.requests).toEqual([]);
  });

  it.each([
    { name: "that the operator named", isNamed: true },
    { name: "that nobody named", isNamed: false },
  ])(
    "[C01] gives the credential to a token server over https $name",
    async ({ isNamed }) => {
      const tokens = await rig.registry({ tls });
      const login = { username: "u", password: "hunter2" };
      const source = { ...publish().pinned, credentials: "regcred" };
      tokens.intercept(() => ({ status: 200, body: '{"token":"hunter2"}' }));
      registry.intercept(({ headers }) =>
        headers.authorization === "Bearer hunter2"
          ? "pass"
          : {
              status: 401,
              headers: {
                "www-authenticate": `Bearer realm="${tokens.url}/t",service="x"`,
              },
            },
      );
      const loading = rig.loader({
        registryCas: new Map([[tokens.authority, caPem]]),
        tokenServers: new Map(
          isNamed ? [[registry.authority, tokens.authority]] : [],
        ),
      });
      const credentialOf = regcred({ [registry.authority]: login });

      const pulling = pull(loading, source, credentialOf);

      if (isNamed) {
        expect((await pulling).bytes).toEqual(WASM);
        expect(
          tokens.requests.map(({ headers }) => headers.authorization),
        ).toEqual([`Basic ${auth("u", "hunter2")}`]);
      } else {
        expect((await failureOf(pulling)).code).toBe("token-realm-refused");
        expect(tokens.requests).toEqual([]);
      }
    },
  );
});
