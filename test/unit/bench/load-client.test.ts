import { create, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";

import { allGood, type TargetResult } from "../../../bench/load-client.js";
import {
  RunFunctionResponseSchema,
  Severity,
} from "../../../src/gen/run_function_pb.js";

const good: TargetResult = {
  name: "tiny",
  codes: { OK: 3 },
  firstError: "",
  firstAnswer: Buffer.alloc(0),
  differentAnswers: 0,
  differentSizes: 0,
  requestsPerSecond: 10,
  samplesUs: [1, 2, 3],
};
const fatal = toBinary(
  RunFunctionResponseSchema,
  create(RunFunctionResponseSchema, {
    results: [{ severity: Severity.FATAL, message: "no such file" }],
  }),
);

describe("bench/load-client", () => {
  it("hands good results back, also when a map came in another order", () => {
    const results = [good, { ...good, differentAnswers: 2 }];

    expect(allGood(results)).toBe(results);
  });

  it.each([
    {
      name: "a call that failed",
      result: {
        ...good,
        codes: { OK: 2, DeadlineExceeded: 1 },
        firstError: "too late",
      },
      want: 'tiny: {"OK":2,"DeadlineExceeded":1}: too late',
    },
    {
      name: "no answer",
      result: { ...good, codes: {}, firstAnswer: null },
      want: "tiny: no call was answered",
    },
    {
      name: "a fatal result",
      result: { ...good, firstAnswer: fatal },
      want: "tiny: no such file",
    },
    {
      name: "answers of another size",
      result: { ...good, differentAnswers: 1, differentSizes: 1 },
      want: "tiny: 1 answers are not like the first",
    },
  ])("refuses $name", ({ result, want }) => {
    expect(() => allGood([good, result])).toThrow(want);
  });
});
