import { fromBinary, toJson } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import {
  runFunctionRequest,
  smallState,
  treeState,
} from "../../../bench/request.js";
import {
  RunFunctionRequestSchema,
  StateSchema,
} from "../../../src/gen/run_function_pb.js";

describe("bench/request", () => {
  it("encodes what the protocol's own decoder reads back", () => {
    const config = {
      text: "a",
      number: 1.5,
      yes: true,
      none: null,
      list: [1, "b", { c: [] }],
    };

    const bytes = runFunctionRequest({
      modulePath: "echo.wasm",
      timeout: "100ms",
      config,
    });

    expect(
      toJson(
        RunFunctionRequestSchema,
        fromBinary(RunFunctionRequestSchema, bytes),
      ),
    ).toMatchObject({
      meta: { tag: "c0ffee" },
      input: {
        apiVersion: "wasm.fn.crossplane.io/v1",
        kind: "Input",
        module: { type: "Path", path: "echo.wasm" },
        limits: { timeout: "100ms" },
        config,
      },
      observed: { composite: { resource: { kind: "XGreeting" } } },
    });
  });

  it("encodes another module, a policy and credentials", () => {
    const bytes = runFunctionRequest({
      modulePath: "echo.wasm",
      timeout: "1s",
      module: { from: "spec.module" },
      compositionPolicy: "permit …",
      observed: smallState({ module: "echo.wasm" }),
      credentials: { db: { token: "t", url: "u" }, other: {} },
    });

    const request = fromBinary(RunFunctionRequestSchema, bytes);

    expect(request.input).toMatchObject({
      module: { type: "Path", from: "spec.module" },
      compositionPolicy: "permit …",
    });
    expect(request.observed?.composite?.resource).toMatchObject({
      spec: { region: "eu-central-1", module: "echo.wasm" },
    });
    expect(toJson(RunFunctionRequestSchema, request)).toMatchObject({
      credentials: {
        db: { credentialData: { data: { token: "dA==", url: "dQ==" } } },
        other: {},
      },
    });
  });

  it("leaves config out when there is none", () => {
    const bytes = runFunctionRequest({
      modulePath: "echo.wasm",
      timeout: "1s",
    });

    const { input } = fromBinary(RunFunctionRequestSchema, bytes);

    expect(Object.keys(input ?? {})).toEqual([
      "apiVersion",
      "kind",
      "module",
      "limits",
    ]);
  });

  it.each([
    { name: "10 kB", minBytes: 10_000 },
    { name: "1 MB", minBytes: 1_000_000 },
  ])("builds a tree of $name out of fields of twenty bytes", ({ minBytes }) => {
    const bytes = treeState(minBytes);

    const { composite, resources } = fromBinary(StateSchema, bytes);
    const leaves = Object.values(resources).flatMap(({ resource }) =>
      strings(resource),
    );
    expect(composite).toEqual(fromBinary(StateSchema, smallState()).composite);
    expect(bytes.length).toBeGreaterThan(minBytes);
    expect(bytes.length).toBeLessThan(minBytes + 2048);
    expect(leaves.length).toBeGreaterThan(minBytes / 100);
    expect(Math.max(...leaves.map((leaf) => leaf.length))).toBeLessThanOrEqual(
      20,
    );
  });
});

function strings(json: unknown): string[] {
  if (typeof json === "string") return [json];
  return json !== null && typeof json === "object"
    ? Object.values(json).flatMap(strings)
    : [];
}
