import { describe, expect, it } from "vitest";
import {
  basicCredential,
  parseBasicAuth,
  tokenCredential,
} from "../../../../src/loader/oci/basic-auth.js";

const base64 = (text: string | Uint8Array): string =>
  Buffer.from(text).toString("base64");

describe("loader/oci/basic-auth", () => {
  it.each([
    { name: "with padding", auth: "dTpwOnc=", password: "p:w" },
    { name: "without padding", auth: "dTpwOnc", password: "p:w" },
    { name: "with a line break at the end", auth: "dTpw\n", password: "p" },
    {
      name: "with line breaks and blanks inside",
      auth: " dTp\r\n\tw Onc=\n",
      password: "p:w",
    },
    {
      name: "in the standard alphabet",
      auth: base64("u:>>>???"),
      password: ">>>???",
    },
    {
      name: "in the URL-safe alphabet",
      auth: Buffer.from("u:>>>???").toString("base64url"),
      password: ">>>???",
    },
    { name: "with no password", auth: base64("u:"), password: "" },
    { name: "beyond ASCII", auth: base64("u:pä€"), password: "pä€" },
  ])("reads auth $name", ({ auth, password }) => {
    expect(parseBasicAuth(auth)).toEqual({
      kind: "ok",
      value: { kind: "basic", username: "u", password },
    });
  });

  it.each([
    {
      name: "characters of neither alphabet",
      auth: "dTpw!Onc",
      want: "auth is not base64",
    },
    { name: "padding inside", auth: "dT=pw", want: "auth is not base64" },
    { name: "too much padding", auth: "dTpw===", want: "auth is not base64" },
    {
      name: "a length no base64 has",
      auth: "dTpwO",
      want: "auth is not base64",
    },
    {
      name: "no colon",
      auth: base64("hunter2"),
      want: "auth has no colon, expected user:password",
    },
    {
      name: "nothing but blanks",
      auth: " \n",
      want: "auth has no colon, expected user:password",
    },
    { name: "no user", auth: base64(":p"), want: "the user name is empty" },
    {
      name: "bytes that are no text",
      auth: base64(Uint8Array.of(0x75, 0x3a, 0xff)),
      want: "auth is not base64 of UTF-8 text",
    },
    {
      name: "a line break in the password",
      auth: base64("u:p\n"),
      want: "the password has a control character, maybe a line break",
    },
  ])("refuses auth with $name, and repeats nothing", ({ auth, want }) => {
    expect(parseBasicAuth(auth)).toEqual({ kind: "error", message: want });
  });

  it.each([
    {
      name: "a colon in the user name",
      username: "u:x",
      password: "p",
      want: "the user name has a colon",
    },
    {
      name: "a line break in the user name",
      username: "u\n",
      password: "p",
      want: "the user name has a control character, maybe a line break",
    },
    {
      name: "more than 65536 characters",
      username: "u",
      password: "p".repeat(65_536),
      want: "user name and password have more than 65536 characters",
    },
  ])("refuses a pair with $name", ({ username, password, want }) => {
    expect(basicCredential(username, password)).toEqual({
      kind: "error",
      message: want,
    });
  });

  it("takes a pair of just 65536 characters", () => {
    expect(basicCredential("u", "p".repeat(65_535)).kind).toBe("ok");
  });

  it.each([
    { name: "a line break", token: "a\r\nx-evil: 1" },
    { name: "a blank", token: "a b" },
    { name: "a character beyond ASCII", token: "aä" },
    { name: "no characters", token: "" },
    { name: "more than 65536 characters", token: "a".repeat(65_537) },
  ])("refuses a token with $name", ({ token }) => {
    const parsed = tokenCredential("registry-token", token);

    expect(parsed).toEqual({
      kind: "error",
      message: expect.stringMatching(/^the token has /u) as string,
    });
  });

  it("takes a token of visible ASCII characters", () => {
    expect(tokenCredential("identity-token", "ey.J-_~+/=!")).toEqual({
      kind: "ok",
      value: { kind: "identity-token", token: "ey.J-_~+/=!" },
    });
  });
});
