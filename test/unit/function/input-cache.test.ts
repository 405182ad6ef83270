import type { JsonObject } from "@bufbuild/protobuf";
import { describe, expect, it, vi } from "vitest";

import {
  AdmissionError,
  admitInput,
  type AdmittedInput,
  type JsonObject as InputObject,
} from "../../../src/admission/index.js";
import { createInputCache } from "../../../src/function/input-cache.js";
import { sourceParsers } from "../../support/source-parsers.js";
import { scanRequest } from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { concat, greeterInput, requestBytes } from "./fixtures.js";

const ceilings = {
  timeoutMs: 1000,
  timeoutText: "1s",
  memoryBytes: 65536,
  memoryText: "64Ki",
  moduleDirSet: true,
  allowUnpinnedTags: false,
};
const policy = 'permit (principal, action == Action::"setEnv", resource);\n';

function setUp() {
  const admit = vi.fn((input: InputObject): AdmittedInput =>
    admitInput(input, ceilings, sourceParsers),
  );
  const readStep = createInputCache(admit);
  const read = (bytes: Uint8Array) => readStep(scanRequest(bytes));
  return {
    admit,
    read,
    readInput: (input: JsonObject) => read(asRequest(input)),
  };
}

function asRequest(input: JsonObject, tag = "t"): Uint8Array {
  return requestBytes({ meta: { tag }, input });
}

function withConfig(config: JsonObject): JsonObject {
  return { ...greeterInput, config };
}

describe("function/input-cache", () => {
  it("admits the same Input once, whatever else the requests hold", () => {
    const { admit, read } = setUp();

    const first = read(asRequest(greeterInput, "one"));
    // The Input lies elsewhere in other bytes, which themselves lie behind something else.
    const padded = concat(
      new Uint8Array(5),
      asRequest(greeterInput, "another"),
    );
    const second = read(padded.subarray(5));

    expect(first.input.module).toMatchObject({
      source: { type: "Path", path: "greeter.wasm" },
    });
    expect(second).toBe(first);
    expect(admit).toHaveBeenCalledTimes(1);
  });

  it("admits an Input that differs in one byte", () => {
    const { admit, readInput } = setUp();

    const first = readInput(withConfig({ greeting: "\u00e9" }));
    const second = readInput(withConfig({ greeting: "\u00e8" }));

    expect(second).not.toBe(first);
    expect(admit).toHaveBeenCalledTimes(2);
  });

  it("hands out what nobody can change", () => {
    const { readInput } = setUp();

    const step = readInput({ ...greeterInput, limits: { concurrency: 2 } });

    for (const part of [step, step.input, step.input.module, step.input.limits])
      expect(Object.isFrozen(part)).toBe(true);
  });

  it("does not remember a refusal", () => {
    const { admit, readInput } = setUp();
    admit.mockImplementationOnce(() => {
      throw new AdmissionError("limit-exceeded", "too much");
    });

    expect(() => readInput(greeterInput)).toThrow("too much");
    expect(() => readInput({ ...greeterInput, nope: 1 })).toThrow("nope");
    expect(() => readInput({ ...greeterInput, nope: 1 })).toThrow("nope");
    expect(readInput(greeterInput).input.apiVersion).toBe(
      greeterInput["apiVersion"],
    );
    expect(admit).toHaveBeenCalledTimes(4);
  });

  it("does not take an Input in two pieces for the same bytes in one", () => {
    const { admit, read } = setUp();
    const whole = asRequest(greeterInput);
    const [range] = scanRequest(whole).input;
    const input = whole.slice(range?.start, range?.end);
    read(bytesField(4, input));

    const cut = concat(
      bytesField(4, input.slice(0, 3)),
      bytesField(4, input.slice(3)),
    );
    const repeated = concat(bytesField(4, input), bytesField(4, input));

    expect(() => read(cut)).toThrow("not a protobuf message");
    read(repeated);
    read(repeated);
    expect(admit).toHaveBeenCalledTimes(3);
  });

  it("knows a long Input again, and one that differs in its last byte", () => {
    const { admit, readInput } = setUp();
    const long = (end: string) => ({
      ...greeterInput,
      compositionPolicy: policy.repeat(10_000) + end,
    });

    const first = readInput(long("//a"));
    const other = readInput(long("//b"));

    expect(readInput(long("//a"))).toBe(first);
    expect(readInput(long("//b"))).toBe(other);
    expect(other).not.toBe(first);
    expect(admit).toHaveBeenCalledTimes(2);
  });

  it("holds no more than 8 MiB of them", () => {
    const { admit, readInput } = setUp();
    const large = (n: number) => ({
      ...greeterInput,
      compositionPolicy: `${"x".repeat(1024 * 1024 - 10)}${n}`,
    });
    for (let n = 0; n < 9; n++) readInput(large(n));

    readInput(large(8));
    expect(admit).toHaveBeenCalledTimes(9);
    readInput(large(0));
    expect(admit).toHaveBeenCalledTimes(10);
  });

  it("forgets the Input used longest ago beyond 256", () => {
    const { admit, readInput } = setUp();
    const numbered = (n: number) => readInput(withConfig({ n }));
    for (let n = 0; n < 256; n++) numbered(n);
    numbered(0);
    expect(admit).toHaveBeenCalledTimes(256);

    numbered(256);
    numbered(0);
    expect(admit).toHaveBeenCalledTimes(257);
    numbered(1);
    expect(admit).toHaveBeenCalledTimes(258);
  });

  it("gives steps one key when module and limits are the same", () => {
    const { readInput } = setUp();
    const key = (concurrency: number | null, path: string, config = {}) =>
      readInput({
        ...greeterInput,
        module: { type: "Path", path },
        limits: { concurrency },
        config,
      }).key;

    expect(key(null, "a.wasm")).toBe("");
    expect(key(2, "a.wasm", { x: 1 })).toBe(key(2, "a.wasm"));
    expect(
      new Set([key(2, "a.wasm"), key(3, "a.wasm"), key(2, "b.wasm"), ""]).size,
    ).toBe(4);
  });
});
