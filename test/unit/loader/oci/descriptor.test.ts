import { describe, expect, it } from "vitest";
import { readDescriptor } from "../../../../src/loader/oci/descriptor.js";

const DIGEST = `sha256:${"a".repeat(64)}`;
const GOOD = { mediaType: "application/wasm", digest: DIGEST, size: 5 };

describe("loader/oci/descriptor", () => {
  it("reads what counts, and nothing that leads elsewhere", () => {
    const descriptor = readDescriptor(
      {
        ...GOOD,
        annotations: { "org.opencontainers.image.title": "fn.wasm" },
        urls: ["http://evil.example"],
        data: "AAAA",
        platform: { os: "linux" },
      },
      "layers[0]",
    );

    expect(descriptor).toEqual({
      mediaType: "application/wasm",
      digest: DIGEST,
      sizeBytes: 5,
      annotations: new Map([["org.opencontainers.image.title", "fn.wasm"]]),
    });
  });

  it.each([
    { size: 0, annotations: null },
    { size: Number.MAX_SAFE_INTEGER, annotations: {} },
  ])("reads a size of $size and no annotations", ({ size, annotations }) => {
    const descriptor = readDescriptor({ ...GOOD, size, annotations }, "config");

    expect(descriptor).toMatchObject({
      sizeBytes: size,
      annotations: new Map(),
    });
  });

  it.each([
    { value: null, want: "layers[0]: expected an object, got nothing" },
    { value: [], want: "layers[0]: expected an object, got a list" },
    { value: DIGEST, want: `layers[0]: expected an object, got "${DIGEST}"` },
    {
      value: { ...GOOD, mediaType: null },
      want: "layers[0].mediaType: expected a media type, got nothing",
    },
    {
      value: { ...GOOD, mediaType: "" },
      want: 'layers[0].mediaType: expected a media type, got ""',
    },
    {
      value: { ...GOOD, mediaType: 1 },
      want: "layers[0].mediaType: expected a media type, got 1",
    },
    ...[-1, 1.5, 2 ** 53, 1e300, "5", null, true].map((size) => ({
      value: { ...GOOD, size },
      want: `layers[0].size: expected a number of bytes, got ${size === null ? "nothing" : JSON.stringify(size)}`,
    })),
    {
      value: { ...GOOD, digest: null },
      want: "layers[0].digest: expected a digest, got nothing",
    },
    {
      value: { ...GOOD, digest: "sha256:../../x\n" },
      want: String.raw`layers[0].digest: expected sha256: and 64 lower-case hex digits, got "sha256:../../x\u000a"`,
    },
    {
      value: { ...GOOD, digest: `sha512:${"a".repeat(128)}` },
      want: 'layers[0].digest: digest algorithm "sha512" is not supported, expected sha256: and 64 lower-case hex digits',
    },
    {
      value: { ...GOOD, annotations: ["a"] },
      want: "layers[0].annotations: expected an object, got a list",
    },
    {
      value: { ...GOOD, annotations: { a: {} } },
      want: 'layers[0].annotations["a"]: expected text, got an object',
    },
  ])("refuses: $want", ({ value, want }) => {
    expect(() => readDescriptor(value, "layers[0]")).toThrow(
      expect.objectContaining({ code: "artifact-invalid", message: want }),
    );
  });
});
