import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { createAccess } from "../../../../src/loader/access.js";
import {
  createImages,
  type FreshManifest,
} from "../../../../src/loader/oci/images.js";
import type { Puller, Registry } from "../../../../src/loader/oci/registry.js";
import { createAccessStore } from "../../../../src/loader/store/access-store.js";
import { createBlobStore } from "../../../../src/loader/store/blob-store.js";
import { openScope } from "../loading.js";
import { handClock, makeDir, recordingLogger } from "../store/fixtures.js";
import { digestOf } from "../store/store-content.js";

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const PULLER: Puller = {
  at: { registry: "h.test", repository: "a/b", location: "h.test/a/b" },
  credential: null,
  identity: "anonymous",
};
const MODULE = { digest: digestOf("module"), sizeBytes: 6 };
const MANIFEST = { digest: digestOf("manifest"), sizeBytes: 8 };

describe("loader/oci/images", () => {
  it.each([
    { name: "bare", type: "application/wasm", form: "wasm" },
    {
      name: "packed",
      type: "application/vnd.oci.image.layer.v1.tar",
      form: "tar",
    },
  ])(
    "keeps of a manifest digests and sizes only, not its annotations: $name",
    async ({ type, form }) => {
      const cacheDir = makeDir();
      const manifest = fresh(annotated(type));
      const image = {
        digest: manifest.digest,
        module: MODULE,
        form,
        manifest: MANIFEST,
      };
      const first = open(cacheDir);

      expect(await first.keep(manifest, PULLER)).toStrictEqual(image);
      expect(await first.cached(manifest.digest, PULLER)).toStrictEqual(image);
      // As it is read from the disk.
      const second = open(cacheDir);
      expect(await second.cached(manifest.digest, PULLER)).toStrictEqual(image);
      expect(
        await second.pinned(manifest.digest, PULLER, openScope()),
      ).toStrictEqual(image);
    },
  );

  it("reads a manifest once that cannot be read, however many ask", async () => {
    const images = open(makeDir());
    const manifest = fresh("{}");
    const read = () => refusalOf(images.keep(manifest, PULLER));

    const refusals = await Promise.all([read(), read()]);
    refusals.push(await read());

    // Each reading would make one of its own.
    expect(refusals[0]).toMatchObject({ code: "artifact-invalid" });
    for (const refusal of refusals) expect(refusal).toBe(refusals[0]);
  });

  it("reads one again that is said to be something else, for that may be right", async () => {
    const images = open(makeDir());
    const { mediaType, ...untyped } = JSON.parse(
      annotated("application/wasm"),
    ) as {
      mediaType: string;
    };
    const manifest = fresh(JSON.stringify(untyped));
    const as = (contentType: string) =>
      images.keep({ ...manifest, contentType }, PULLER);

    const refusal = await refusalOf(
      as("application/vnd.oci.image.index.v1+json"),
    );

    expect(refusal).toMatchObject({ code: "artifact-invalid" });
    expect(await as(mediaType)).toMatchObject({ module: MODULE });
  });

  it("remembers of a manifest that cannot be read nothing that is large", async () => {
    const images = open(makeDir());
    const refuse = (i: number) =>
      refusalOf(
        images.keep(
          { ...fresh(`{"a":${i}}`), contentType: `${i}`.padEnd(60_000, "x") },
          PULLER,
        ),
      );
    await refuse(0);
    const before = usedBytes();

    for (let i = 1; i <= 400; i++) await refuse(i);

    expect(usedBytes() - before).toBeLessThan(400 * 20_000);
    expect(await refuse(400)).toBe(await refuse(400));
  });

  it("does not tell one who was sent on what it knows to be wrong with a manifest", async () => {
    const images = open(makeDir());
    const manifest = fresh('{"crown":"hunter2","crown":"hunter2"}');
    await refusalOf(images.keep(manifest, PULLER));

    const refusal = await refusalOf(
      images.keep({ ...manifest, sentOnTo: "in.test" }, PULLER),
    );

    expect(refusal).toMatchObject({
      code: "artifact-invalid",
      message:
        "h.test sent on to in.test, and what is there is no image manifest with a module",
    });
  });
});

function open(cacheDir: string) {
  const clock = handClock();
  const { logger } = recordingLogger();
  return createImages({
    registry: nobody,
    access: createAccess(
      createAccessStore(cacheDir, clock, logger),
      600_000,
      clock,
    ),
    manifests: createBlobStore({ cacheDir, kind: "manifests" }, clock, logger),
    clock,
    logger,
  });
}

const asked = () => Promise.reject(new Error("nobody is to be asked"));
const nobody: Registry = { manifest: asked, check: asked, blob: asked };

function annotated(moduleType: string): string {
  const annotations = { "a.test/text": "long ".repeat(1_000) };
  const layer = (
    mediaType: string,
    { digest, sizeBytes: size }: typeof MODULE,
  ) => ({ mediaType, digest, size, annotations });
  return JSON.stringify({
    schemaVersion: 2,
    mediaType: OCI_MANIFEST,
    artifactType: "a/b",
    config: layer("application/vnd.wasm.config.v0+json", MODULE),
    layers: [
      layer(moduleType, MODULE),
      layer("application/vnd.wasmfn.manifest.v1+json", MANIFEST),
    ],
    annotations,
  });
}

/** As a registry delivered it to anybody. */
function fresh(text: string): FreshManifest {
  return {
    bytes: Buffer.from(text),
    digest: digestOf(text),
    contentType: OCI_MANIFEST,
    claimedDigest: null,
    usedCredential: false,
    sentOnTo: null,
  };
}

async function refusalOf(keeping: Promise<unknown>): Promise<unknown> {
  return await keeping.then(
    () => null,
    (thrown: unknown) => thrown,
  );
}

/** Of the heap, by what is really in use. */
function usedBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
