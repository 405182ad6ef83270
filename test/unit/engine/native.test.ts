import { isAbsolute } from "node:path";

import { describe, expect, it, vi } from "vitest";

import {
  compilerPath,
  loadAddon,
  nativeError,
} from "../../../src/engine/native.js";

const required = vi.hoisted(() => ({
  load: vi.fn<(path: string) => object>(),
}));
vi.mock("node:module", () => ({ createRequire: () => required.load }));

describe("engine/native nativeError", () => {
  it.each(["invalid", "stale", "io", "internal"] as const)(
    "reads the code %s",
    (code) => {
      const error = new Error(`[${code}] expected this, got [io] that`);

      expect(nativeError(error)).toEqual({
        code,
        text: "expected this, got [io] that",
      });
    },
  );

  it.each([
    {
      name: "an unknown code",
      thrown: new Error("[other] text"),
      want: "[other] text",
    },
    {
      name: "a code of the compiler's",
      thrown: new Error("[changed] text"),
      want: "[changed] text",
    },
    { name: "no code", thrown: new Error("it broke"), want: "it broke" },
    {
      name: "a code that is not first",
      thrown: new Error("x [io] y"),
      want: "x [io] y",
    },
    { name: "a code without a space", thrown: new Error("[io]"), want: "[io]" },
    { name: "an empty message", thrown: new Error(""), want: "" },
    { name: "a string", thrown: "it broke", want: "it broke" },
    { name: "undefined", thrown: undefined, want: "undefined" },
    { name: "several lines", thrown: new Error("one\n  two"), want: "one two" },
  ])("takes $name for internal", ({ thrown, want }) => {
    expect(nativeError(thrown)).toEqual({ code: "internal", text: want });
  });

  it("keeps several lines on one", () => {
    expect(nativeError(new Error("[io] one\r\ntwo\nthree"))).toEqual({
      code: "io",
      text: "one two three",
    });
  });

  it("reads an empty text", () => {
    expect(nativeError(new Error("[io] "))).toEqual({ code: "io", text: "" });
  });
});

describe("engine/native loadAddon", () => {
  it("loads the addon beside the compiler", () => {
    const addon = {};
    required.load.mockReturnValueOnce(addon);

    expect(loadAddon()).toBe(addon);

    const [path] = required.load.mock.lastCall ?? [];
    expect(path).toMatch(/\/build\/native\/wasmtime-node\.node$/);
    expect(compilerPath).toMatch(/\/build\/native\/wasmtime-compile$/);
    expect(isAbsolute(compilerPath)).toBe(true);
  });

  it("says how to build what it cannot load", () => {
    const cause = new Error(
      "invalid ELF header\nin file\nRequire stack:\n- /a/native.js",
    );
    required.load.mockImplementationOnce(() => {
      throw cause;
    });

    expect(() => loadAddon()).toThrow(
      expect.objectContaining({
        name: "EngineError",
        code: "engine-fault",
        message:
          "cannot load the native addon, build it with `npm run build`: invalid ELF header in file",
        cause,
      }) as Error,
    );
  });
});
