import { describe, expect, it } from "vitest";
import { parseChallenges } from "../../../../src/loader/oci/challenge.js";

const REALM = "https://ghcr.io/token";

describe("loader/oci/challenge", () => {
  it.each([
    {
      name: "[C02] commas inside quotes",
      values: [
        `Bearer realm="${REALM}",scope="repository:a/b:pull,push",service="s"`,
      ],
      want: [
        [
          "bearer",
          { realm: REALM, scope: "repository:a/b:pull,push", service: "s" },
        ],
      ],
    },
    {
      name: "[C03] two challenges in one value, schemes and names in any case",
      values: [`BASIC Realm="x", bearer REALM="${REALM}"`],
      want: [
        ["basic", { realm: "x" }],
        ["bearer", { realm: REALM }],
      ],
    },
    {
      name: "[C03] two header lines",
      values: [`Basic realm="x"`, `Bearer realm="${REALM}",service="s"`],
      want: [
        ["basic", { realm: "x" }],
        ["bearer", { realm: REALM, service: "s" }],
      ],
    },
    {
      name: "escaped quotes and backslashes",
      values: [String.raw`Basic realm="a \"b\", Bearer \\ c=\d"`],
      want: [["basic", { realm: String.raw`a "b", Bearer \ c=d` }]],
    },
    {
      name: "blanks and tabs wherever they may be, empty list elements",
      values: [` , Bearer \t realm = "${REALM}"\t,, service=\ts ,  Basic ,`],
      want: [
        ["bearer", { realm: REALM, service: "s" }],
        ["basic", {}],
      ],
    },
    {
      name: "a token68, also one that ends in equals signs, among others",
      values: [`Negotiate YWJj==, NTLM abc , Basic realm=x`],
      want: [
        ["negotiate", {}],
        ["ntlm", {}],
        ["basic", { realm: "x" }],
      ],
    },
    {
      name: "an empty quoted string, and a name without its value in quotes",
      values: [`Bearer realm="",service=gcr.io`],
      want: [["bearer", { realm: "", service: "gcr.io" }]],
    },
    {
      name: "schemes alone",
      values: ["Negotiate", "NTLM,Basic"],
      want: [
        ["negotiate", {}],
        ["ntlm", {}],
        ["basic", {}],
      ],
    },
    { name: "no value", values: [], want: [] },
    { name: "nothing but separators", values: ["", " , ,"], want: [] },
  ])("reads $name", ({ values, want }) => {
    const challenges = parseChallenges(values);

    expect(plain(challenges)).toEqual(want);
  });

  it.each([
    { name: "a quote that is not closed", value: `Bearer realm="${REALM}` },
    { name: "a quote closed by an escape", value: `Bearer realm="x\\"` },
    { name: "text after a quote", value: `Bearer realm="x"y` },
    {
      name: "no comma between parameters",
      value: `Bearer realm="x" service=s`,
    },
    { name: "a URL without quotes", value: `Bearer realm=${REALM}` },
    { name: "two schemes in a row", value: `Basic Bearer realm="x"` },
    { name: "a value that is missing", value: `Bearer realm=x, service=` },
    {
      name: "a parameter twice",
      value: `Bearer realm="x", REALM="https://evil.example/"`,
    },
    { name: "a character no scheme has", value: `Bea(rer realm="x"` },
  ])("takes nothing from a value with $name", ({ value }) => {
    const challenges = parseChallenges([
      `Basic realm="before", ${value}`,
      "Negotiate",
    ]);

    expect(plain(challenges)).toEqual([["negotiate", {}]]);
  });

  it("takes nothing from a parameter without a scheme", () => {
    expect(parseChallenges([`realm="x", Basic`])).toEqual([]);
  });

  it.each([
    {
      name: "8 KiB",
      values: ["Basic a", `Bearer realm="${"x".repeat(8192 - 22)}"`],
      want: 2,
    },
    {
      name: "more than 8 KiB",
      values: ["Basic a", `Bearer realm="${"x".repeat(8192 - 21)}"`],
      want: 0,
    },
    { name: "16 challenges", values: Array<string>(8).fill("a, b"), want: 16 },
    {
      name: "17 challenges",
      values: [...Array<string>(8).fill("a, b"), "c"],
      want: 0,
    },
  ])("of $name takes $want", ({ values, want }) => {
    expect(parseChallenges(values)).toHaveLength(want);
  });

  it.each([
    { name: "blanks", value: `a${" ".repeat(8000)}(` },
    { name: "token characters", value: `a ${"b".repeat(8000)}(` },
    { name: "equals signs", value: `a b${"=".repeat(8000)}(` },
    { name: "escapes", value: `a b="${"\\\\".repeat(4000)}` },
    { name: "commas", value: `a ${", ".repeat(4000)}(` },
  ])("is done with 8 KiB of $name in no time", ({ value }) => {
    const startedAtMs = performance.now();

    const challenges = parseChallenges([value]);

    expect(challenges).toEqual([]);
    expect(performance.now() - startedAtMs).toBeLessThan(500);
  });
});

function plain(challenges: ReturnType<typeof parseChallenges>) {
  return challenges.map(({ scheme, params }) => [
    scheme,
    Object.fromEntries(params),
  ]);
}
