import { describe, expect, it } from "vitest";

import { readDocument } from "../../../../src/admission/manifest/document.js";
import { utf8 } from "./fixtures.js";

describe("admission/manifest/document", () => {
  it("reads a file as YAML and a layer as JSON", () => {
    expect(readDocument("file", utf8("abi: 2"))).toEqual({ abi: 2 });
    expect(readDocument("layer", utf8('{"abi": 2}'))).toEqual({ abi: 2 });
    expect(() => readDocument("layer", utf8("abi: 2"))).toThrow(
      "it is not JSON: ",
    );
  });

  it.each(["file", "layer"] as const)(
    "skips a byte order mark (%s)",
    (form) => {
      const bytes = Uint8Array.of(0xef, 0xbb, 0xbf, ...utf8('{"abi": 2}'));

      expect(readDocument(form, bytes)).toEqual({ abi: 2 });
    },
  );

  it.each(["file", "layer"] as const)(
    "takes 64 KiB and no more (%s)",
    (form) => {
      const manifest = '{"abi": 2}';
      const largest = utf8(manifest + " ".repeat(64 * 1024 - manifest.length));

      expect(readDocument(form, largest)).toEqual({ abi: 2 });
      expect(() => readDocument(form, Uint8Array.of(...largest, 0x20))).toThrow(
        "it is 65537 bytes long, expected at most 65536 (64 KiB)",
      );
    },
  );

  it.each([
    { name: "a broken sequence", bytes: Uint8Array.of(0x61, 0xc3) },
    { name: "a surrogate", bytes: Uint8Array.of(0xed, 0xa0, 0x80) },
    { name: "UTF-16", bytes: Uint8Array.of(0xff, 0xfe, 0x61, 0x00) },
  ])("refuses $name", ({ bytes }) => {
    expect(() => readDocument("file", bytes)).toThrow("it is not UTF-8: ");
    expect(() => readDocument("layer", bytes)).toThrow("it is not UTF-8: ");
  });

  it.each(["", " \r\n", "\uFEFF"])("refuses %j, which is empty", (text) => {
    expect(() => readDocument("file", utf8(text))).toThrow("it is empty");
    expect(() => readDocument("layer", utf8(text))).toThrow("it is empty");
  });
});
