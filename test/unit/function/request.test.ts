import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";

import { maxPieces } from "../../../src/function/pieces.js";
import {
  maxCredentialFields,
  maxTagBytes,
  readConfig,
  readInput,
  scanRequest,
  type ScannedRequest,
} from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { concat, deepStruct, greeterInput, requestBytes } from "./fixtures.js";
import { decodePlain, jsonOf } from "./plain-decoder.js";
import {
  double,
  join,
  message,
  mistyped,
  shuffled,
  some,
  structFields,
  text,
  unknownField,
  varint,
} from "./wire-parts.js";

/** A request whose Input has `config`. */
function requestWith(config: JsonValue): ScannedRequest {
  return scanRequest(requestBytes({ input: { ...greeterInput, config } }));
}

/** The same, `config` being a Value of these bytes. */
function requestWithValue(...values: readonly Uint8Array[]): ScannedRequest {
  const pieces = values.map((value) => bytesField(2, value));
  const entry = concat(text(1, "config").wire, ...pieces);
  return scanRequest(bytesField(4, bytesField(1, entry)));
}

describe("function/request", () => {
  it.each([
    { name: "no meta", bytes: [], want: "" },
    {
      name: "one meta",
      bytes: [requestBytes({ meta: { tag: "a" } })],
      want: "a",
    },
    {
      name: "the last tag of several metas",
      bytes: [
        requestBytes({ meta: { tag: "a" } }),
        requestBytes({ meta: { tag: "b" } }),
        requestBytes({ meta: { capabilities: [1] } }),
      ],
      want: "b",
    },
    {
      name: "an empty tag after another",
      bytes: [
        requestBytes({ meta: { tag: "a" } }),
        bytesField(1, bytesField(1, new Uint8Array())),
      ],
      want: "",
    },
    {
      name: "any text",
      bytes: [requestBytes({ meta: { tag: "\ufeffä\0" } })],
      want: "\ufeffä\0",
    },
  ])("reads the tag of $name", ({ bytes, want }) => {
    expect(scanRequest(concat(...bytes)).tag).toBe(want);
  });

  it("takes a tag of as many bytes as it says, if another does not replace it", () => {
    const tagged = (length: number) =>
      requestBytes({ meta: { tag: "ä".repeat(length / 2) } });
    const want = `meta.tag has ${maxTagBytes + 2} bytes, more than the 65536 bytes it may have`;

    expect(scanRequest(tagged(maxTagBytes)).tag).toHaveLength(32_768);
    expect(() => scanRequest(tagged(maxTagBytes + 2))).toThrow(want);
    expect(scanRequest(concat(tagged(maxTagBytes + 2), tagged(4))).tag).toBe(
      "ää",
    );
  });

  it.each([
    { name: "a digest", tag: "0123456789abcdef".repeat(4) },
    {
      name: "a long text",
      tag: "x".repeat(2000),
      logTag: `${"x".repeat(128)}…`,
    },
    { name: "a forged line", tag: 'a\n{"b":1}', logTag: 'a\\u000a{\\"b\\":1}' },
    { name: "nothing", tag: "" },
  ])("has for logs a short tag of $name", ({ tag, logTag = tag }) => {
    const request = scanRequest(requestBytes({ meta: { tag } }));

    expect(request).toMatchObject({ tag, logTag });
  });

  it("decodes one tag of the thousands that a request may have", () => {
    const tags = Array.from({ length: 1000 }, (_, i) => text(1, `t${i}`));
    const bytes = message(1, tags).wire;
    const decode = vi.spyOn(TextDecoder.prototype, "decode");
    try {
      expect(scanRequest(bytes).tag).toBe("t999");
      expect(decode).toHaveBeenCalledTimes(1);
    } finally {
      decode.mockRestore();
    }
  });

  it.each([
    { field: "meta", number: 1, most: maxPieces },
    { field: "observed", number: 2, most: maxPieces },
    { field: "desired", number: 3, most: maxPieces },
    { field: "input", number: 4, most: maxPieces },
    { field: "context", number: 5, most: maxPieces },
    { field: "credentials", number: 7, most: maxCredentialFields },
  ])(
    "takes the field $field $most times at most",
    ({ field, number, most }) => {
      const repeated = (count: number) =>
        Buffer.alloc(2 * count, bytesField(number, new Uint8Array()));
      const want = `the field ${field} occurs more than ${most} times in one message`;

      expect(() => scanRequest(repeated(most))).not.toThrow();
      expect(() => scanRequest(repeated(most + 1))).toThrow(
        expect.objectContaining({ code: "wire-malformed", message: want }),
      );
    },
  );

  it("counts whatever has the number of credentials", () => {
    const repeated = Buffer.alloc(
      2 * maxCredentialFields + 2,
      varint(7, 1).wire,
    );

    expect(() => scanRequest(repeated)).toThrow("the field credentials occurs");
  });

  it("reads an Input of 4,096 values outside its config", () => {
    const inputOf = (names: number) =>
      scanRequest(
        requestBytes({
          input: {
            module: Object.fromEntries(
              Array.from({ length: names }, (_, i) => [`k${i}`, null]),
            ),
            config: new Array<number>(5_000).fill(1),
          },
        }),
      );

    // The others are `module` and `config` themselves.
    expect(() => readInput(inputOf(4_094))).not.toThrow();
    expect(() => readInput(inputOf(4_095))).toThrow(
      "cannot read the Input: it has more than 4096 values outside config",
    );
    expect(readConfig(inputOf(4_095))).toHaveLength(5_000);
  });

  it("merges the parts of the Input", () => {
    const request = scanRequest(
      concat(
        requestBytes({ input: { kind: "Input", module: { type: "Path" } } }),
        requestBytes({ meta: { tag: "between" } }),
        requestBytes({ input: { module: { type: "OCI" } } }),
      ),
    );

    expect(JSON.parse(JSON.stringify(readInput(request)))).toEqual({
      kind: "Input",
      module: { type: "OCI" },
    });
  });

  it("refuses a request without an Input, and takes an empty one", () => {
    expect(() => readInput(scanRequest(requestBytes({})))).toThrow(
      "the step has no input: expected an Input of wasm.fn.crossplane.io/v1 naming a module",
    );
    expect({ ...readInput(scanRequest(requestBytes({ input: {} }))) }).toEqual(
      {},
    );
  });

  it("finds the parts it is asked for, in order, and nothing else", () => {
    const numbers = {
      observed: 2,
      desired: 3,
      input: 4,
      context: 5,
      credentials: 7,
    };
    const field = fc.oneof(
      fc.constantFrom(2, 3, 4, 5, 7).chain((n) =>
        fc.uint8Array({ maxLength: 4 }).map((value) => ({
          number: n,
          value: bytesField(n, value),
        })),
      ),
      unknownField.map(({ wire }) => ({ number: 0, value: wire })),
      fc
        .constantFrom(2, 3, 4, 5)
        .chain(mistyped)
        .map(({ wire }) => ({ number: 0, value: wire })),
      mistyped(7).map(({ wire }) => ({ number: 7, value: wire })),
    );
    fc.assert(
      fc.property(fc.array(field), (fields) => {
        const bytes = concat(...fields.map(({ value }) => value));

        const request = scanRequest(bytes);

        for (const name of ["observed", "desired", "input", "context"] as const)
          expect(
            request[name].map(({ start, end }) => [
              ...bytesField(numbers[name], bytes.slice(start, end)),
            ]),
          ).toEqual(
            fields
              .filter(({ number }) => number === numbers[name])
              .map(({ value }) => [...value]),
          );
        // Of credentials the whole field, whatever its wire type.
        expect(
          request.credentials.map(({ start, end }) => [
            ...bytes.slice(start, end),
          ]),
        ).toEqual(
          fields
            .filter(({ number }) => number === numbers.credentials)
            .map(({ value }) => [...value]),
        );
      }),
    );
  });

  it("does not follow observed state, however deep", () => {
    const deep = bytesField(
      2,
      bytesField(1, bytesField(1, deepStruct(100_000))),
    );
    const bytes = concat(requestBytes(), deep);

    const request = scanRequest(bytes);

    expect(request.tag).toBe("a-tag");
    expect(request.observed).toHaveLength(1);
  });

  it.each([
    { name: "text", bytes: new TextEncoder().encode("<html>no</html>") },
    { name: "a cut off request", bytes: requestBytes().subarray(0, -1) },
    {
      name: "a tag that is not UTF-8",
      bytes: Uint8Array.of(10, 3, 10, 1, 255),
    },
    { name: "a meta that is no message", bytes: Uint8Array.of(10, 1, 255) },
  ])("refuses $name", ({ bytes }) => {
    expect(() => scanRequest(bytes)).toThrow("not a protobuf message");
  });

  describe("readConfig", () => {
    it("reads what a decoder reads, however the Input is written", () => {
      const config = structFields.map((parts) =>
        message(1, [text(1, "config"), message(2, [message(5, parts)])]),
      );
      const input = fc
        .tuple(structFields, some(config, 2))
        .chain(([parts, configs]) =>
          shuffled(fc.constant(parts), fc.constant(configs)),
        );
      const request = shuffled(
        some(
          input.map((parts) => message(4, parts)),
          2,
        ),
        some(unknownField),
      ).map(join);
      let found = 0;
      fc.assert(
        fc.property(request, ({ wire, typed }) => {
          const decoded = decodePlain(typed).input;
          const want = decoded === undefined ? {} : jsonOf(decoded);

          const got = readConfig(scanRequest(wire));

          expect(JSON.stringify(got)).toBe(
            JSON.stringify(want["config"] ?? undefined),
          );
          if (got !== undefined) found += 1;
        }),
        { numRuns: 300 },
      );
      expect(found).toBeGreaterThan(50);
    });

    it.each([
      { name: "no Input", request: scanRequest(requestBytes({})) },
      { name: "no config", request: scanRequest(requestBytes()) },
      { name: "a config of null", request: requestWith(null) },
      { name: "a config without a kind", request: requestWithValue() },
    ])("finds none in a request with $name", ({ request }) => {
      expect(readConfig(request)).toBeUndefined();
    });

    it.each<{ name: string; config: JsonValue }>([
      { name: "an empty object", config: {} },
      { name: "an object", config: { a: null, b: [1, { c: "x" }], config: 1 } },
      { name: "false", config: false },
      { name: "an empty text", config: "" },
    ])("reads $name", ({ config }) => {
      expect(JSON.stringify(readConfig(requestWith(config)))).toBe(
        JSON.stringify(config),
      );
    });

    it("reads no config of another object, and leaves it out of the Input", () => {
      const request = scanRequest(
        requestBytes({ input: { module: { config: 1 }, config: { a: "x" } } }),
      );

      expect({ ...(readConfig(request) as JsonObject) }).toEqual({ a: "x" });
      expect(JSON.stringify(readInput(request))).toBe(
        '{"module":{"config":1},"config":{}}',
      );
    });

    it("follows 128 levels, far more than manifests have", () => {
      const nested = (levels: number) =>
        requestWithValue(bytesField(5, deepStruct(levels)));

      expect(readConfig(nested(30))).toBeDefined();
      expect(readConfig(nested(128))).toBeDefined();
      for (const levels of [129, 100_000])
        expect(() => readConfig(nested(levels))).toThrow(
          "cannot read the Input's config: it nests deeper than 128 levels",
        );
    });

    it.each([
      {
        name: "NaN",
        value: double(2, NaN).wire,
        want: "cannot read the Input's config: it holds NaN, which is no JSON",
      },
      {
        name: "infinity inside a list",
        value: message(6, [message(1, [double(2, -Infinity)])]).wire,
        want: "cannot read the Input's config: it holds -Infinity, which is no JSON",
      },
      {
        name: "more values than it says",
        value: bytesField(6, Buffer.alloc(200_000, bytesField(1, Buffer.of()))),
        want: "cannot read the Input's config: it has more than 100000 values",
      },
      {
        name: "bytes that are no message",
        value: Uint8Array.of(0xff),
        want: "not a protobuf message: a varint is cut off",
      },
    ])("refuses $name", ({ value, want }) => {
      expect(() => readConfig(requestWithValue(value))).toThrow(want);
    });
  });
});
