import { describe, expect, it } from "vitest";

import { AdmissionError } from "../../../../src/admission/index.js";
import { FileError } from "../../../../src/cli/files/error.js";
import { isRefusal } from "../../../../src/cli/module/outcome.js";
import { ConfigError } from "../../../../src/config.js";
import {
  EngineError,
  type EngineErrorCode,
} from "../../../../src/engine/index.js";
import {
  LoaderError,
  type LoaderErrorCode,
} from "../../../../src/loader/index.js";

const engine = (code: EngineErrorCode) => new EngineError(code, "");
const loader = (code: LoaderErrorCode) => new LoaderError(code, "");

describe("cli/module/outcome", () => {
  it.each([
    new AdmissionError("manifest-invalid", ""),
    new AdmissionError("abi-mismatch", ""),
    engine("module-invalid"),
    engine("compile-failed"),
    loader("artifact-invalid"),
    loader("module-empty"),
    loader("module-too-large"),
  ])("$name $code is the module's fault", (error) => {
    expect(isRefusal(error)).toBe(true);
  });

  it.each([
    engine("load-failed"),
    engine("module-changed"),
    loader("registry-unreachable"),
    loader("registry-auth-failed"),
    loader("module-not-found"),
    loader("digest-mismatch"),
    new ConfigError("flag-invalid", ""),
    new FileError("file-invalid", ""),
    new Error(""),
  ])("$name $code is not", (error) => {
    expect(isRefusal(error)).toBe(false);
  });
});
