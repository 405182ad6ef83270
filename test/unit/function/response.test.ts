import { createRegistry, equals, fromBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import { scanRequest } from "../../../src/function/request.js";
import {
  fatalResponse,
  finishResponse,
  maxResponseBytes,
  skippedResponse,
} from "../../../src/function/response.js";
import { bytesField, WireReader } from "../../../src/function/wire.js";
import {
  file_run_function,
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
  Severity,
  StateSchema,
  type State,
} from "../../../src/gen/run_function_pb.js";
import { concat, deepStruct, requestBytes, responseBytes } from "./fixtures.js";
import {
  join,
  message,
  shuffled,
  some,
  text,
  unknownField,
} from "./wire-parts.js";

const meta = {
  request: scanRequest(requestBytes({ meta: { tag: "t" } })),
  ttlNanos: 61_000_000_001n,
};
const description = "Path big.wasm";

function decode(bytes: Uint8Array) {
  return fromBinary(RunFunctionResponseSchema, bytes);
}

/** The values of one field, in order. */
function valuesOf(bytes: Uint8Array, fieldNumber: number): Uint8Array[] {
  const values: Uint8Array[] = [];
  const reader = new WireReader(bytes);
  while (reader.next()) {
    if (reader.fieldNumber !== fieldNumber) continue;
    values.push(
      new Uint8Array(bytes.slice(reader.valueStart, reader.valueEnd)),
    );
  }
  return values;
}

function hex(parts: readonly Uint8Array[]): string[] {
  return parts.map((part) => Buffer.from(part).toString("hex"));
}

describe("function/response", () => {
  it.each([
    { name: "a meta", bytes: responseBytes({ meta: { tag: "own" } }) },
    { name: "an empty meta", bytes: bytesField(1, new Uint8Array()) },
    {
      name: "a meta behind everything else",
      bytes: concat(
        responseBytes({ desired: { resources: { a: {} } } }),
        bytesField(1023, Uint8Array.of(1)),
        responseBytes({ meta: { ttl: { seconds: 5n } } }),
      ),
    },
  ])("returns an answer with $name as it is", ({ bytes }) => {
    expect(finishResponse(bytes, meta, description)).toBe(bytes);
  });

  it.each([
    { name: "nothing", bytes: new Uint8Array() },
    {
      name: "desired state and an unknown field",
      bytes: concat(
        responseBytes({ desired: { resources: { a: {} } } }),
        bytesField(1023, Uint8Array.of(1)),
      ),
    },
    {
      name: "a field 1 that no decoder takes for a meta",
      bytes: new BinaryWriter().tag(1, WireType.Varint).uint32(1).finish(),
    },
  ])("puts a meta behind $name", ({ bytes }) => {
    const answer = finishResponse(bytes, meta, description);

    expect(answer.subarray(0, bytes.length)).toEqual(Buffer.from(bytes));
    expect(decode(answer.subarray(bytes.length)).meta).toMatchObject({
      tag: "t",
      ttl: { seconds: 61n, nanos: 1 },
    });
  });

  it.each([
    { name: "a long one", tag: "f".repeat(64), ttlNanos: 60_000_000_000n },
    {
      name: "one longer than 127 bytes",
      tag: "\u00e9".repeat(70),
      ttlNanos: 1n,
    },
    { name: "no tag and no TTL", tag: "", ttlNanos: 0n },
    {
      name: "the longest TTL a flag can hold",
      tag: "t",
      ttlNanos: 2n ** 63n - 1n,
    },
  ])("writes a meta as any decoder reads it: $name", ({ tag, ttlNanos }) => {
    const request = scanRequest(requestBytes({ meta: { tag } }));

    const answer = finishResponse(
      new Uint8Array(),
      { request, ttlNanos },
      description,
    );

    const { meta: read } = decode(answer);
    expect(read?.tag).toBe(tag);
    const { seconds, nanos } = read?.ttl ?? { seconds: -1n, nanos: -1 };
    expect(seconds * 1_000_000_000n + BigInt(nanos)).toBe(ttlNanos);
    expect(decode(answer)).toMatchObject({ results: [], conditions: [] });
  });

  it.each([
    { name: "a TTL", own: 5n, carried: [], want: 5n },
    { name: "no TTL, but a meta", own: null, carried: [], want: undefined },
    {
      name: "no meta, and asks for more",
      own: undefined,
      carried: [],
      want: 0n,
    },
    {
      name: "no meta, and asks for more than it got",
      own: undefined,
      carried: ["a"],
      want: 0n,
    },
    {
      name: "no meta, and asks for what it got",
      own: undefined,
      carried: ["a", "b"],
      want: 61n,
    },
  ])("keeps an answer with requirements as long as it may: $name", (row) => {
    const selector = { apiVersion: "v1", kind: "ConfigMap" };
    const bytes = responseBytes({
      requirements: { resources: { a: selector, b: selector } },
      ...(row.own === undefined
        ? {}
        : {
            meta: row.own === null ? {} : { ttl: { seconds: row.own } },
          }),
    });
    const request = scanRequest(
      requestBytes({
        requiredResources: Object.fromEntries(
          row.carried.map((name) => [name, {}]),
        ),
      }),
    );

    const answer = finishResponse(bytes, { ...meta, request }, description);

    expect(decode(answer).meta?.ttl?.seconds).toBe(row.want);
    expect(decode(answer).requirements).toEqual(decode(bytes).requirements);
  });

  const blob = (bytes: number) => ({
    connectionDetails: { k: new Uint8Array(bytes) },
  });
  const sized = (bytes: number) => {
    const overhead = responseBytes({
      meta: { tag: "" },
      desired: { resources: { a: blob(2 ** 21) } },
    }).length;
    return responseBytes({
      meta: { tag: "" },
      desired: { resources: { a: blob(2 ** 21 + bytes - overhead) } },
    });
  };

  it("returns as much as Crossplane can receive, and not a byte more", () => {
    const largest = sized(maxResponseBytes);

    expect(largest.length).toBe(maxResponseBytes);
    expect(finishResponse(largest, meta, description)).toBe(largest);
    expect(() =>
      finishResponse(sized(maxResponseBytes + 1), meta, description),
    ).toThrow(
      "module Path big.wasm returned 4194305 bytes, more than the 4194304 bytes Crossplane can receive",
    );
  });

  it("counts the meta it appends", () => {
    const bytes = bytesField(1023, new Uint8Array(maxResponseBytes - 6));

    expect(bytes.length).toBe(maxResponseBytes);
    expect(() => finishResponse(bytes, meta, description)).toThrow(
      "more than the 4194304 bytes Crossplane can receive",
    );
  });

  describe("with a warning", () => {
    const warning = "ghcr.io/a/b:v1: no answer";
    const result = responseBytes({
      results: [{ severity: Severity.WARNING, message: warning }],
    });
    const finish = (bytes: Uint8Array, text = warning) =>
      finishResponse(bytes, meta, description, text);

    it("puts it behind the module's own bytes", () => {
      const bytes = responseBytes({
        meta: { tag: "own" },
        results: [{ severity: Severity.NORMAL, message: "greeted" }],
      });

      expect(finish(bytes)).toEqual(Buffer.concat([bytes, result]));
      expect(decode(finish(bytes)).results).toMatchObject([
        { severity: Severity.NORMAL, message: "greeted" },
        { severity: Severity.WARNING, message: warning },
      ]);
    });

    it("puts it behind the meta that the module did not give", () => {
      const bytes = responseBytes({ desired: { resources: { a: {} } } });

      expect(finish(bytes)).toEqual(
        Buffer.concat([finishResponse(bytes, meta, description), result]),
      );
    });

    it("leaves it out of an answer that it would make too large", () => {
      const largest = sized(maxResponseBytes - result.length);
      const larger = sized(maxResponseBytes - result.length + 1);

      expect(finish(largest)).toHaveLength(maxResponseBytes);
      expect(finish(larger)).toBe(larger);
    });

    it("leaves it out, not the meta, where there is no room for both", () => {
      const metaBytes = finishResponse(new Uint8Array(), meta, description);
      const bytes = bytesField(
        1023,
        new Uint8Array(maxResponseBytes - metaBytes.length - 6),
      );

      const answer = finish(bytes);

      expect(answer).toHaveLength(maxResponseBytes);
      expect(answer.subarray(bytes.length)).toEqual(Buffer.from(metaBytes));
    });

    it("refuses what is too large without it, too", () => {
      expect(() => finish(sized(maxResponseBytes + 1))).toThrow(
        "returned 4194305 bytes",
      );
    });

    it("makes one line of it, and no long one", () => {
      const text = `a\nb\u2028${"x".repeat(5_000)}`;

      const { results } = decode(finish(new Uint8Array(), text));

      expect(results[0]?.message).toMatch(/^a b x+…$/);
      expect(Buffer.byteLength(results[0]?.message ?? "")).toBe(4_096);
    });
  });

  it("names the three largest resources, escaped and cut", () => {
    const bytes = concat(
      responseBytes({
        desired: { resources: { small: blob(1), 'a"\n': blob(2_000_000) } },
      }),
      responseBytes({
        desired: {
          resources: {
            medium: blob(1_000_000),
            [`n${"x".repeat(200)}`]: blob(1_500_000),
            tiny: {},
          },
        },
      }),
    );

    expect(() => finishResponse(bytes, meta, description)).toThrow(
      /; largest desired resources: "a\\"\\u000a" 20000\d\d bytes, "nx{63}…" 15002\d\d bytes, "medium" 10000\d\d bytes$/,
    );
  });

  it.each([
    { name: "a meta first", at: 0, want: "the answer" },
    {
      name: "a meta in the last place looked at",
      at: 100_000,
      want: "the answer",
    },
    { name: "a meta behind that", at: 100_001, want: "a refusal" },
  ])("looks at 100,000 fields for a meta, and finds $name", ({ at, want }) => {
    const field = bytesField(9, new Uint8Array());
    const bytes = concat(
      ...new Array<Uint8Array>(at).fill(field),
      bytesField(1, new Uint8Array()),
    );

    const finish = () => finishResponse(bytes, meta, description);

    if (want === "the answer") expect(finish()).toBe(bytes);
    else
      expect(finish).toThrow(
        "module Path big.wasm returned no RunFunctionResponse: it has more than 100000 fields",
      );
  });

  it("spends no more on an answer of millions of resources than on one of many", () => {
    const entry = bytesField(2, new Uint8Array());
    const state = bytesField(2, Buffer.alloc(3_000_000 * entry.length, entry));

    const startedMs = performance.now();
    expect(() => finishResponse(state, meta, description)).toThrow(
      "more than the 4194304 bytes Crossplane can receive",
    );

    // Unbounded it took seconds; the bound is far above the few milliseconds it takes.
    expect(performance.now() - startedMs).toBeLessThan(1_000);
  });

  it("says so without a list when desired state is not what is large", () => {
    const bytes = bytesField(1023, new Uint8Array(5_000_000));

    expect(() => finishResponse(bytes, meta, description)).toThrow(
      /Crossplane can receive$/,
    );
  });

  it.each([
    { name: "text", bytes: new TextEncoder().encode("<html>") },
    {
      name: "too much of something broken",
      bytes: concat(
        bytesField(2, Uint8Array.of(0xff)),
        bytesField(1023, new Uint8Array(maxResponseBytes)),
      ),
    },
  ])("refuses $name as no response", ({ bytes }) => {
    expect(() => finishResponse(bytes, meta, description)).toThrow(
      "module Path big.wasm returned no RunFunctionResponse: not a protobuf message",
    );
  });

  describe("skippedResponse", () => {
    const resource = shuffled(
      some(fc.constant(message(1, [message(1, [text(1, "k")])])), 1),
      some(unknownField, 2),
    );
    const state = shuffled(
      some(
        resource.map((parts) => message(1, parts)),
        2,
      ),
      some(
        fc
          .tuple(fc.constantFrom("a", "b", "c"), resource)
          .map(([name, parts]) =>
            message(2, [text(1, name), message(2, parts)]),
          ),
      ),
      some(unknownField, 2),
    );
    const context = some(
      fc
        .constantFrom("x", "y", "z")
        .map((key) => message(1, [text(1, key), message(2, [text(3, key)])])),
    );
    const anyRequest = shuffled(
      some(state.map((parts) => message(3, parts))),
      some(context.map((parts) => message(5, parts))),
      some(state.map((parts) => message(2, parts))),
      some(
        fc.string().map((tag) => message(1, [text(1, tag)])),
        2,
      ),
      some(unknownField),
    ).map((parts) => join(parts).wire);

    it("changes nothing a decoder sees", () => {
      const options = {
        registry: createRegistry(file_run_function),
        unknown: true,
      };
      const same = (a: State | undefined, b: State | undefined) =>
        a === undefined || b === undefined
          ? a === b
          : equals(StateSchema, a, b, options);
      fc.assert(
        fc.property(anyRequest, (bytes) => {
          const answer = decode(
            skippedResponse(scanRequest(bytes), 90_000_000_000n),
          );

          const request = fromBinary(RunFunctionRequestSchema, bytes);
          expect(same(answer.desired, request.desired)).toBe(true);
          expect(answer.context).toEqual(request.context);
          expect(answer.meta).toMatchObject({
            tag: request.meta?.tag ?? "",
            ttl: { seconds: 90n, nanos: 0 },
          });
          expect(answer.results).toEqual([]);
          expect(answer.conditions).toEqual([]);
          expect(answer.requirements).toBeUndefined();
        }),
        { numRuns: 300 },
      );
    });

    it("keeps desired state and context byte for byte", () => {
      fc.assert(
        fc.property(anyRequest, (bytes) => {
          const answer = skippedResponse(scanRequest(bytes), 0n);

          expect(hex(valuesOf(answer, 2))).toEqual(hex(valuesOf(bytes, 3)));
          expect(hex(valuesOf(answer, 4))).toEqual(hex(valuesOf(bytes, 5)));
        }),
      );
      const deep = concat(bytesField(3, deepStruct(100_000)));
      const answer = skippedResponse(scanRequest(deep), 0n);
      expect(hex(valuesOf(answer, 2))).toEqual(hex(valuesOf(deep, 3)));
    });

    it("returns as much as Crossplane can receive, and says what is too large", () => {
      const request = (bytes: number) =>
        scanRequest(
          concat(
            requestBytes({
              desired: { resources: { small: {}, large: blob(bytes) } },
            }),
            requestBytes({ context: { key: "x" } }),
          ),
        );
      const overhead = skippedResponse(request(2 ** 21), 0n).length - 2 ** 21;

      const largest = request(maxResponseBytes - overhead);

      expect(skippedResponse(largest, 0n)).toHaveLength(maxResponseBytes);
      expect(() =>
        skippedResponse(request(maxResponseBytes - overhead + 1), 0n),
      ).toThrow(
        /^desired state and context, which the step returns unchanged, are 4194305 bytes, more than the 4194304 bytes Crossplane can receive; largest desired resources: "large" 41942\d\d bytes, "small" 9 bytes$/,
      );
    });

    it("refuses what is too large under its own code", () => {
      const request = scanRequest(bytesField(5, new Uint8Array(5_000_000)));

      expect(() => skippedResponse(request, 0n)).toThrow(
        expect.objectContaining({ code: "response-too-large" }),
      );
    });
  });

  describe("fatalResponse", () => {
    it("keeps desired state and context byte for byte", () => {
      // No decoder would read these, or write them back as they are.
      const desired = [bytesField(2, deepStruct(100_000)), Uint8Array.of(8, 1)];
      const context = [deepStruct(2), bytesField(9, Uint8Array.of(1))];
      const request = concat(
        requestBytes({
          meta: { tag: "t" },
          observed: { resources: { o: {} } },
        }),
        ...desired.map((value) => bytesField(3, value)),
        ...context.map((value) => bytesField(5, value)),
      );

      const answer = fatalResponse(scanRequest(request), "why", 0n);

      // Megabytes: compared as text, element by element takes minutes.
      expect(hex(valuesOf(answer, 2))).toEqual(hex(desired));
      expect(hex(valuesOf(answer, 4))).toEqual(hex(context));
      expect(valuesOf(answer, 1)).toHaveLength(1);
      expect(valuesOf(answer, 3)).toHaveLength(1);
    });

    it("carries tag, TTL and one fatal result", () => {
      const request = scanRequest(requestBytes({ meta: { tag: "t" } }));

      const answer = decode(fatalResponse(request, "why", 1_500_000_000n));

      expect(answer.meta).toMatchObject({
        tag: "t",
        ttl: { seconds: 1n, nanos: 500_000_000 },
      });
      expect(answer.results).toMatchObject([
        { severity: Severity.FATAL, message: "why" },
      ]);
      expect(answer.desired).toBeUndefined();
      expect(answer.context).toBeUndefined();
    });

    it("says a TTL of 0 rather than none", () => {
      const request = scanRequest(requestBytes({}));

      const answer = decode(fatalResponse(request, "why", 0n));

      expect(answer.meta?.ttl).toMatchObject({ seconds: 0n, nanos: 0 });
    });

    it("leaves out state that would keep the answer from arriving", () => {
      const state = bytesField(3, bytesField(9, new Uint8Array(5_000_000)));

      const answer = fatalResponse(scanRequest(state), "why", 0n);

      expect(decode(answer).results[0]?.message).toBe("why");
      expect(answer.length).toBeLessThan(100);
    });

    it.each([
      { name: "line breaks", message: "a\r\nb\u2028c\0d", want: "a b c d" },
      { name: "half a character", message: "a\ud800b", want: "a\ufffdb" },
      {
        name: "more than 4 KiB",
        message: "x".repeat(5000),
        want: `${"x".repeat(4093)}…`,
      },
      {
        name: "a character across the end",
        message: "€".repeat(2000),
        want: `${"€".repeat(1364)}…`,
      },
      {
        name: "exactly 4 KiB",
        message: "x".repeat(4096),
        want: "x".repeat(4096),
      },
    ])("shows a message with $name", ({ message, want }) => {
      const request = scanRequest(requestBytes({}));

      const answer = decode(fatalResponse(request, message, 0n));

      expect(answer.results[0]?.message).toBe(want);
    });
  });
});
