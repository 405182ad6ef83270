import { describe, expect, it } from "vitest";

import { manifestWith, refusalOf } from "./fixtures.js";

const METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const RULE = { host: "example.com", methods: ["GET"] };
const BINDING = { name: "A", fromCredential: { name: "db", key: "password" } };

describe("admission/manifest/requirements", () => {
  it("binds variables", () => {
    const { requires } = manifestWith({
      requires: { env: [BINDING, { ...BINDING, name: "_b9" }] },
    });

    expect(requires.env).toEqual([
      { name: "A", credential: "db", key: "password" },
      { name: "_b9", credential: "db", key: "password" },
    ]);
  });

  it("names credentials", () => {
    const names = ["cmdb", "a name with blanks", "n".repeat(253)];

    expect(manifestWith({ requires: { credentials: names } })).toMatchObject({
      requires: { credentials: names },
    });
  });

  it.each([true, false])("reads privateTmp: %s", (privateTmp) => {
    expect(
      manifestWith({ requires: { filesystem: { privateTmp } } }),
    ).toMatchObject({ requires: { privateTmp } });
  });

  it("takes 64 of each, and no more", () => {
    const env = numbered(65, (n) => ({ ...BINDING, name: `A${n}` }));
    const credentials = numbered(65, (n) => `c${n}`);
    const http = numbered(65, () => RULE);

    expect(
      manifestWith({
        requires: {
          egress: { http: http.slice(1) },
          env: env.slice(1),
          credentials: credentials.slice(1),
        },
      }).requires.egress,
    ).toHaveLength(64);
    expect(refusalOf({ requires: { env } })).toBe(
      "requires.env: expected at most 64 items, got 65",
    );
    expect(refusalOf({ requires: { credentials } })).toBe(
      "requires.credentials: expected at most 64 items, got 65",
    );
    expect(refusalOf({ requires: { egress: { http } } })).toBe(
      "requires.egress.http: expected at most 64 items, got 65",
    );
  });

  it.each([
    {
      name: "privateTmp that is no boolean",
      requires: { filesystem: { privateTmp: 1 } },
      want: "requires.filesystem.privateTmp: expected true or false, got 1",
    },
    {
      name: "a filesystem that is a boolean",
      requires: { filesystem: true },
      want: "requires.filesystem: expected an object, got true",
    },
    {
      name: "env that is an object",
      requires: { env: { A: "b" } },
      want: "requires.env: expected a list, got an object",
    },
    {
      name: "null in env",
      requires: { env: [null] },
      want: "requires.env[0]: expected an object, got null",
    },
    {
      name: "a variable without name",
      requires: { env: [{ fromCredential: BINDING.fromCredential }] },
      want: "requires.env[0].name is required",
    },
    {
      name: "a variable without source",
      requires: { env: [{ name: "A" }] },
      want: "requires.env[0].fromCredential is required",
    },
    {
      name: "a source without name",
      requires: { env: [{ name: "A", fromCredential: { key: "k" } }] },
      want: "requires.env[0].fromCredential.name is required",
    },
    {
      name: "a source without key",
      requires: { env: [{ name: "A", fromCredential: { name: "n" } }] },
      want: "requires.env[0].fromCredential.key is required",
    },
    {
      name: "a source that is a text",
      requires: { env: [{ name: "A", fromCredential: "db" }] },
      want: 'requires.env[0].fromCredential: expected an object, got "db"',
    },
    {
      name: "a key too long",
      requires: {
        env: [
          { name: "A", fromCredential: { name: "n", key: "k".repeat(254) } },
        ],
      },
      want: "requires.env[0].fromCredential.key is 254 characters long, expected at most 253",
    },
    {
      name: "a variable that starts with a digit",
      requires: { env: [{ ...BINDING, name: "1A" }] },
      want: 'requires.env[0].name: expected a letter or "_" and then letters, digits or "_", got "1A"',
    },
    {
      name: "a variable with = in it",
      requires: { env: [{ ...BINDING, name: "A=B" }] },
      want: 'requires.env[0].name: expected a letter or "_" and then letters, digits or "_", got "A=B"',
    },
    {
      name: "a variable too long",
      requires: { env: [{ ...BINDING, name: "A".repeat(129) }] },
      want: "requires.env[0].name is 129 characters long, expected at most 128",
    },
    {
      name: "a variable twice",
      requires: { env: [BINDING, { ...BINDING, name: "B" }, BINDING] },
      want: 'requires.env[2].name: "A" is in requires.env[0].name already',
    },
    {
      name: "a credential that is an object",
      requires: { credentials: [{ name: "x" }] },
      want: "requires.credentials[0]: expected a string, got an object",
    },
    {
      name: "a credential without name",
      requires: { credentials: [""] },
      want: "requires.credentials[0] is empty",
    },
    {
      name: "a credential name too long",
      requires: { credentials: ["c".repeat(254)] },
      want: "requires.credentials[0] is 254 characters long, expected at most 253",
    },
    {
      name: "a credential twice",
      requires: { credentials: ["a", "b", "b"] },
      want: 'requires.credentials[2]: "b" is in requires.credentials[1] already',
    },
  ])("refuses $name", ({ requires, want }) => {
    expect(refusalOf({ requires })).toBe(want);
  });

  describe("an egress rule", () => {
    it.each([
      {
        name: "https on 443 without prefix unless it says so",
        rule: RULE,
        want: {
          host: "example.com",
          methods: ["GET"],
          pathPrefix: "",
          scheme: "https",
          port: 443,
        },
      },
      {
        name: "http on 80",
        rule: { ...RULE, scheme: "http" },
        want: { scheme: "http", port: 80 },
      },
      {
        name: "https on 443, said",
        rule: { ...RULE, scheme: "https", port: 443 },
        want: { scheme: "https", port: 443 },
      },
      {
        name: "another port",
        rule: { ...RULE, port: 65535 },
        want: { scheme: "https", port: 65535 },
      },
      {
        name: "every method, in its own order",
        rule: { ...RULE, methods: METHODS.split(", ").reverse() },
        want: { methods: METHODS.split(", ").reverse() },
      },
      {
        name: "a pattern",
        rule: { hostPattern: "*.Example.com", methods: ["GET"] },
        want: { host: "*.example.com" },
      },
      {
        name: "a host beside a pattern that is null",
        rule: { ...RULE, hostPattern: null },
        want: { host: "example.com" },
      },
      {
        name: "a literal address (C85: whoever dials judges it)",
        rule: { ...RULE, host: "169.254.169.254" },
        want: { host: "169.254.169.254" },
      },
    ])("is $name", ({ rule, want }) => {
      const { requires } = manifestWith({
        requires: { egress: { http: [rule] } },
      });

      expect(requires.egress).toMatchObject([want]);
    });

    it.each([
      {
        name: "no host",
        rule: { methods: ["GET"] },
        want: ": expected one of host and hostPattern, got neither",
      },
      {
        name: "two hosts",
        rule: { ...RULE, hostPattern: "*.example.com" },
        want: ": expected one of host and hostPattern, got both",
      },
      {
        name: "a host that is none",
        rule: { ...RULE, host: "https://example.com" },
        want: '.host: expected a DNS name or an IP address, got "https://example.com": a host has no scheme and no path',
      },
      {
        name: "a host that is a number",
        rule: { ...RULE, host: 127.1 },
        want: ".host: expected a string, got 127.1: put it in quotes",
      },
      {
        name: "a pattern that is none",
        rule: { hostPattern: "*", methods: ["GET"] },
        want: '.hostPattern: expected "*." and a DNS name, such as "*.example.com", got "*"',
      },
      {
        name: "no methods",
        rule: { host: "example.com" },
        want: ".methods is required",
      },
      {
        name: "an empty list of methods",
        rule: { ...RULE, methods: [] },
        want: `.methods: expected at least one of ${METHODS}, got an empty list`,
      },
      {
        name: "a method that is no list",
        rule: { ...RULE, methods: "GET" },
        want: '.methods: expected a list, got "GET"',
      },
      {
        name: "a method in lower case",
        rule: { ...RULE, methods: ["GET", "post"] },
        want: `.methods[1]: expected one of ${METHODS}, got "post": write "POST"`,
      },
      {
        name: "a method not among them",
        rule: { ...RULE, methods: ["CONNECT"] },
        want: `.methods[0]: expected one of ${METHODS}, got "CONNECT"`,
      },
      {
        name: "null as a method",
        rule: { ...RULE, methods: [null] },
        want: `.methods[0]: expected one of ${METHODS}, got null`,
      },
      {
        name: "a method twice",
        rule: { ...RULE, methods: ["GET", "GET"] },
        want: '.methods[1]: "GET" is in requires.egress.http[0].methods[0] already',
      },
      {
        name: "more methods than there are",
        rule: { ...RULE, methods: Array<string>(8).fill("GET") },
        want: ".methods: expected at most 7 items, got 8",
      },
      {
        name: "a prefix that leads out",
        rule: { ...RULE, pathPrefix: "/a/../b" },
        want: '.pathPrefix: expected a path such as "/v1/", got "/a/../b": it has a segment "." or ".."',
      },
      {
        name: "an empty prefix",
        rule: { ...RULE, pathPrefix: "" },
        want: ".pathPrefix is empty",
      },
      {
        name: "a prefix too long",
        rule: { ...RULE, pathPrefix: `/${"a".repeat(1024)}` },
        want: ".pathPrefix is 1025 characters long, expected at most 1024",
      },
      {
        name: "a scheme in upper case",
        rule: { ...RULE, scheme: "HTTPS" },
        want: '.scheme: expected https or http, got "HTTPS"',
      },
      {
        name: "another scheme",
        rule: { ...RULE, scheme: "ftp" },
        want: '.scheme: expected https or http, got "ftp"',
      },
      ...[0, 65536, 1.5, "443", true, -1].map((port) => ({
        name: `port ${JSON.stringify(port)}`,
        rule: { ...RULE, port },
        want: `.port: expected a whole number from 1 to 65535, got ${JSON.stringify(port)}`,
      })),
    ])("is refused for $name", ({ rule, want }) => {
      const http = [rule];

      expect(refusalOf({ requires: { egress: { http } } })).toBe(
        `requires.egress.http[0]${want}`,
      );
    });

    it("is refused when it is null, or in no list", () => {
      expect(refusalOf({ requires: { egress: { http: [RULE, null] } } })).toBe(
        "requires.egress.http[1]: expected an object, got null",
      );
      expect(refusalOf({ requires: { egress: { http: RULE } } })).toBe(
        "requires.egress.http: expected a list, got an object",
      );
      expect(refusalOf({ requires: { egress: [RULE] } })).toBe(
        "requires.egress: expected an object, got a list",
      );
    });
  });
});

function numbered<T>(count: number, make: (n: string) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(String(n)));
}
