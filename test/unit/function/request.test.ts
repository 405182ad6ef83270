import { fromBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  readInput,
  scanRequest,
  withoutCredentials,
} from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { RunFunctionRequestSchema } from "../../../src/gen/run_function_pb.js";
import { concat, deepStruct, requestBytes } from "./fixtures.js";

const secret = requestBytes({
  credentials: {
    db: {
      source: {
        case: "credentialData",
        value: { data: { password: new TextEncoder().encode("hunter2") } },
      },
    },
  },
});

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

  it("hands on a request without credentials as the same bytes, not a copy", () => {
    const bytes = requestBytes();

    expect(withoutCredentials(scanRequest(bytes))).toBe(bytes);
  });

  it("removes every credential and nothing else", () => {
    const part = fc.constantFrom(
      { bytes: secret, kept: false },
      {
        bytes: new BinaryWriter().tag(7, WireType.Varint).uint32(1).finish(),
        kept: false,
      },
      { bytes: Uint8Array.of(0x3b, 0x08, 0x01, 0x3c), kept: false },
      { bytes: bytesField(7, new Uint8Array()), kept: false },
      // A tag that takes two bytes though one would do.
      { bytes: Uint8Array.of(0xba, 0x00, 0x00), kept: false },
      { bytes: requestBytes({ meta: { tag: "t" } }), kept: true },
      {
        bytes: requestBytes({ desired: { resources: { a: {} } } }),
        kept: true,
      },
      { bytes: bytesField(1023, Uint8Array.of(1, 2, 3)), kept: true },
      { bytes: bytesField(8, secret), kept: true },
    );
    fc.assert(
      fc.property(fc.array(part), (parts) => {
        const bytes = concat(...parts.map((each) => each.bytes));

        const forwarded = withoutCredentials(scanRequest(bytes));

        const kept = parts.filter((each) => each.kept);
        expect(new Uint8Array(forwarded)).toEqual(
          concat(...kept.map((each) => each.bytes)),
        );
        expect(scanRequest(forwarded).credentials).toEqual([]);
      }),
    );
  });

  it("leaves a decoder no credential to find", () => {
    const forwarded = withoutCredentials(
      scanRequest(concat(requestBytes(), secret, secret)),
    );

    const decoded = fromBinary(RunFunctionRequestSchema, forwarded);
    expect(decoded.credentials).toEqual({});
    expect(decoded.meta?.tag).toBe("a-tag");
    expect(Buffer.from(forwarded).includes("hunter2")).toBe(false);
  });

  it("does not follow observed state, however deep", () => {
    const deep = bytesField(
      2,
      bytesField(1, bytesField(1, deepStruct(100_000))),
    );
    const bytes = concat(requestBytes(), deep);

    const request = scanRequest(bytes);

    expect(request.tag).toBe("a-tag");
    expect(withoutCredentials(request)).toBe(bytes);
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
});
