import { describe, expect, it } from "vitest";

import { AdmissionError } from "../../../src/admission/index.js";
import { EngineError } from "../../../src/engine/index.js";
import { FunctionError } from "../../../src/function/error.js";
import { fatalFrom } from "../../../src/function/fatal.js";
import { LoaderError } from "../../../src/loader/index.js";

describe("function/fatal", () => {
  it.each([
    new AdmissionError("input-invalid", "m"),
    new AdmissionError("limit-exceeded", "m"),
    new AdmissionError("source-refused", "m"),
    new EngineError("module-invalid", "m"),
    new FunctionError("input-missing", "m"),
    new LoaderError("module-dir-unset", "m"),
  ])("calls $code permanent", (thrown) => {
    expect(fatalFrom(thrown)).toEqual({
      code: thrown.code,
      message: "m",
      permanence: "permanent",
      outcome:
        thrown instanceof AdmissionError || thrown instanceof FunctionError
          ? "refused"
          : "error",
    });
  });

  it.each([
    new AdmissionError("policy-unavailable", "m"),
    new EngineError("slot-wait", "m"),
    new EngineError("run-deadline", "m"),
    new EngineError("run-timeout", "m"),
    new EngineError("still-compiling", "m"),
    new EngineError("engine-fault", "m"),
    new EngineError("run-error", "m"),
    new LoaderError("module-not-found", "m"),
    new LoaderError("module-unreadable", "m"),
  ])("calls $code transient", (thrown) => {
    expect(fatalFrom(thrown)).toEqual({
      code: thrown.code,
      message: "m",
      permanence: "transient",
      outcome: "error",
    });
  });

  it.each([
    { name: "an error of ours nobody expected", thrown: new Error("hunter2") },
    { name: "no error at all", thrown: "hunter2" },
    { name: "nothing", thrown: undefined },
    {
      name: "a code that is not in the map",
      thrown: new FunctionError("toString" as never, "hunter2"),
    },
  ])("tells nothing of $name", ({ thrown }) => {
    expect(fatalFrom(thrown)).toEqual({
      code: "internal",
      message: "internal error of the function runtime: see its log",
      permanence: "transient",
      outcome: "error",
    });
  });
});
