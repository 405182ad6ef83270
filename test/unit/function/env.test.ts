import { describe, expect, it } from "vitest";

import { AdmissionError } from "../../../src/admission/index.js";
import {
  materialiseEnv,
  requireCredentials,
} from "../../../src/function/env.js";
import { scanRequest } from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { requestBytes } from "./fixtures.js";

const description = "Path greeter.wasm";

function requestWith(
  credentials: Record<string, Record<string, string | Uint8Array>>,
) {
  const source = (data: Record<string, string | Uint8Array>) => ({
    case: "credentialData" as const,
    value: {
      data: Object.fromEntries(
        Object.entries(data).map(([key, value]) => [key, Buffer.from(value)]),
      ),
    },
  });
  return scanRequest(
    requestBytes({
      credentials: Object.fromEntries(
        Object.entries(credentials).map(([name, data]) => [
          name,
          { source: source(data) },
        ]),
      ),
    }),
  );
}

function refusal(act: () => unknown): unknown {
  try {
    act();
  } catch (thrown) {
    if (thrown instanceof AdmissionError)
      return { code: thrown.code, message: thrown.message };
    throw thrown;
  }
  return undefined;
}

describe("function/env", () => {
  describe("materialiseEnv", () => {
    it("fills the bound variables, in order, and no others", () => {
      const request = requestWith({
        db: { url: "postgres://u:hunter2@h/d", unused: "x" },
        api: { token: "\ufeffhunter2ä€\n" },
        other: { token: "hunter2-y" },
      });

      const env = materialiseEnv(
        request,
        [
          { name: "TOKEN", credential: "api", key: "token" },
          { name: "DB", credential: "db", key: "url" },
          { name: "DB_AGAIN", credential: "db", key: "url" },
        ],
        description,
      );

      expect(env).toEqual([
        { name: "TOKEN", value: "\ufeffhunter2ä€\n" },
        { name: "DB", value: "postgres://u:hunter2@h/d" },
        { name: "DB_AGAIN", value: "postgres://u:hunter2@h/d" },
      ]);
    });

    it("binds an empty value", () => {
      const request = requestWith({ db: { url: "" } });
      const bindings = [{ name: "A", credential: "db", key: "url" }];

      expect(materialiseEnv(request, bindings, description)).toEqual([
        { name: "A", value: "" },
      ]);
    });

    it("binds nothing to a module that asks for nothing, and looks at nothing", () => {
      const broken = scanRequest(bytesField(7, Uint8Array.of(0xff)));

      expect(materialiseEnv(broken, [], description)).toEqual([]);
    });

    it("leaves out what is not asked for, and counts it all the same", () => {
      const request = requestWith({ db: { url: "u" } });
      const bindings = [
        { name: "TOKEN", credential: "api", key: "token" },
        { name: "DB", credential: "db", key: "url" },
        { name: "USER", credential: "db", key: "user" },
      ];
      const environment = (...asked: string[]) =>
        materialiseEnv(request, bindings, "m", ({ name }) =>
          asked.includes(name),
        );

      expect(environment("DB")).toEqual([{ name: "DB", value: "u" }]);
      expect(environment()).toEqual([]);
      expect(() => environment("DB", "USER")).toThrow(
        'module m: requires.env[2] (USER): credential "db" has no key "user"',
      );
    });

    it.each([
      {
        name: "no credential at all",
        credentials: {},
        code: "credential-missing",
        want: 'requires.env[1] (A): the request carries no credential "db"; declare it on the pipeline step',
      },
      {
        name: "another credential only",
        credentials: { dB: { url: "hunter2" } },
        code: "credential-missing",
        want: 'requires.env[1] (A): the request carries no credential "db"; declare it on the pipeline step',
      },
      {
        name: "a credential without the key",
        credentials: { db: { URL: "hunter2" } },
        code: "credential-missing",
        want: 'requires.env[1] (A): credential "db" has no key "url"',
      },
      {
        name: "a value that is not UTF-8",
        credentials: { db: { url: Uint8Array.of(0x73, 0xc3) } },
        code: "env-invalid",
        want: 'requires.env[1] (A): key "url" of credential "db" is not UTF-8 text',
      },
      {
        name: "half a character",
        credentials: { db: { url: Uint8Array.of(0xed, 0xa0, 0x80) } },
        code: "env-invalid",
        want: 'requires.env[1] (A): key "url" of credential "db" is not UTF-8 text',
      },
      {
        name: "a NUL character",
        credentials: { db: { url: "hunter2\0" } },
        code: "env-invalid",
        want: 'requires.env[1] (A): key "url" of credential "db" holds a NUL character',
      },
    ])("refuses $name", ({ credentials, code, want }) => {
      const request = requestWith({
        api: { token: "hunter2-t" },
        ...credentials,
      });
      const bindings = [
        { name: "TOKEN", credential: "api", key: "token" },
        { name: "A", credential: "db", key: "url" },
      ];

      const got = refusal(() => materialiseEnv(request, bindings, description));

      expect(got).toEqual({
        code,
        message: `module Path greeter.wasm: ${want}`,
      });
    });

    it("escapes what a manifest says", () => {
      const bindings = [{ name: "A\n", credential: 'd"b', key: "u\u202el" }];

      expect(() => materialiseEnv(requestWith({}), bindings, "m")).toThrow(
        String.raw`module m: requires.env[0] (A\u000a): the request carries no credential "d\"b"`,
      );
      expect(() =>
        materialiseEnv(requestWith({ 'd"b': {} }), bindings, "m"),
      ).toThrow(String.raw`credential "d\"b" has no key "u\u202el"`);
    });
  });

  describe("requireCredentials", () => {
    it.each([
      { name: "none", names: [] },
      { name: "one", names: ["cmdb"] },
      { name: "one without data", names: ["empty"] },
      { name: "several", names: ["empty", "cmdb", "cmdb"] },
    ])("is content with $name that the request carries", ({ names }) => {
      const request = requestWith({ cmdb: { a: "b" }, empty: {} });

      expect(
        refusal(() => requireCredentials(request, names, description)),
      ).toBeUndefined();
    });

    it("names the first that is not there, and its place", () => {
      const request = requestWith({ cmdb: { a: "hunter2" } });

      const got = refusal(() =>
        requireCredentials(request, ["cmdb", "vault", "other"], description),
      );

      expect(got).toEqual({
        code: "credential-missing",
        message:
          'module Path greeter.wasm: requires.credentials[1]: the request carries no credential "vault"; declare it on the pipeline step',
      });
    });
  });
});
