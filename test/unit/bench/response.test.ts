import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import { fatalIn, readResponse } from "../../../bench/response.js";
import {
  RunFunctionResponseSchema,
  Severity,
  StateSchema,
} from "../../../src/gen/run_function_pb.js";

const { FATAL, NORMAL, WARNING } = Severity;

describe("bench/response", () => {
  it.each([
    { name: "no result", results: [], want: null },
    {
      name: "results that are not fatal",
      results: [
        { severity: NORMAL, message: "a" },
        { severity: WARNING, message: "b" },
      ],
      want: null,
    },
    {
      name: "a fatal one after another",
      results: [
        { severity: NORMAL, message: "a" },
        { severity: FATAL, message: "b" },
      ],
      want: "b",
    },
    {
      name: "a fatal one without a message",
      results: [{ severity: FATAL }],
      want: "",
    },
  ])("finds $want in a response with $name", ({ results, want }) => {
    const bytes = toBinary(
      RunFunctionResponseSchema,
      create(RunFunctionResponseSchema, { results }),
    );

    expect(fatalIn(bytes)).toBe(want);
  });

  it("reads the tag and the bytes of the desired state", () => {
    const desired = create(StateSchema, { resources: { cm: { ready: 1 } } });
    const response = create(RunFunctionResponseSchema, {
      meta: { tag: "t" },
      desired,
    });

    const read = readResponse(toBinary(RunFunctionResponseSchema, response));

    expect(read).toEqual({
      tag: "t",
      desired: toBinary(StateSchema, desired),
      fatal: null,
    });
  });

  it("throws on bytes that are no protobuf", () => {
    expect(() => readResponse(Buffer.from("<html>"))).toThrow();
  });
});
