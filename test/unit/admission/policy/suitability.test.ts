import { describe, expect, it } from "vitest";

import { AdmissionError } from "../../../../src/admission/index.js";
import { runtimeCompatibility } from "../../../../src/admission/manifest/compatibility.js";
import type { JsonValue } from "../../../../src/admission/json.js";
import {
  checkAbi,
  checkSuitability,
} from "../../../../src/admission/policy/suitability.js";
import { manifestOf } from "./fixtures.js";

const MODULE = "Path greeter.wasm";

function refusal(act: () => void): AdmissionError | undefined {
  try {
    act();
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(AdmissionError);
    return thrown as AdmissionError;
  }
  return undefined;
}

/** Whoever has no schema has no use for a config, which may be large. */
const unread = () => {
  throw new Error("read without need");
};

describe("admission/policy/suitability checkSuitability", () => {
  it("takes a manifest that needs nothing", () => {
    expect(
      refusal(() => {
        checkSuitability(manifestOf(), MODULE, unread);
      }),
    ).toBeUndefined();
  });

  it("takes this runtime, and refuses to be older than a module needs", () => {
    const needing = (minRuntime: string) =>
      refusal(() => {
        checkSuitability(manifestOf({}, { minRuntime }), MODULE, unread);
      });

    expect(needing(runtimeCompatibility)).toBeUndefined();
    expect(needing("99.0.0")).toMatchObject({
      code: "runtime-too-old",
      message: `module Path greeter.wasm requires runtime v99.0.0 or newer, this is v${runtimeCompatibility}`,
    });
  });

  it("holds config to the schema, an absent one as an empty object", () => {
    const seen: JsonValue[] = [];
    const configSchema = {
      check(config: JsonValue) {
        seen.push(config);
        return seen.length === 1 ? null : "/greeting: got number, want string";
      },
    };
    const check = (config: JsonValue | undefined) =>
      refusal(() => {
        checkSuitability(
          manifestOf({}, { configSchema }),
          MODULE,
          () => config,
        );
      });

    expect(check(undefined)).toBeUndefined();
    expect(check({ greeting: 1 })).toMatchObject({
      code: "config-invalid",
      message:
        "module Path greeter.wasm: config does not match the module's schema: /greeting: got number, want string",
    });
    expect(seen).toEqual([{}, { greeting: 1 }]);
  });
});

describe("admission/policy/suitability checkAbi", () => {
  it("takes the declared ABI and no other", () => {
    const check = (abi: 1 | 2) =>
      refusal(() => {
        checkAbi(manifestOf({}, { abi: 2 }), MODULE, abi);
      });

    expect(check(2)).toBeUndefined();
    expect(check(1)).toMatchObject({
      code: "abi-mismatch",
      message:
        "module Path greeter.wasm: its manifest declares abi 2, but its binary is of abi 1",
    });
  });
});
