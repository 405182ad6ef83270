import { describe, expect, it } from "vitest";
import {
  readRegistryWords,
  registryWords,
} from "../../../../src/loader/oci/registry-words.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { scriptedSend } from "./scripted-send.js";

const SECRET = "planted-secret-of-more-than-sixteen";

describe("loader/oci/registry-words", () => {
  it.each([
    {
      name: "an error's code and message",
      body: errors({ code: "UNAUTHORIZED", message: "sign  in\nfirst" }),
      want: "UNAUTHORIZED: sign in first",
    },
    {
      name: "two errors of three",
      body: errors(
        { code: "A", message: "a" },
        { code: "B", message: "b" },
        { code: "C", message: "c" },
      ),
      want: "A: a; B: b",
    },
    {
      name: "a code alone, a message alone",
      body: errors({ code: "DENIED", message: 7 }, { message: "no" }),
      want: "DENIED; no",
    },
    {
      name: "text escaped, with what would reorder or forge it",
      body: errors({ code: "\u202e", message: 'a"\u0007' }),
      want: String.raw`\u202e: a\"\u0007`,
    },
    {
      name: "long codes and messages shortened",
      body: errors({ code: "c".repeat(61), message: "m".repeat(161) }),
      want: `${"c".repeat(60)}…: ${"m".repeat(160)}…`,
    },
    {
      name: "JSON of another shape as text",
      body: `{"details": "wrong user"}`,
      want: String.raw`{\"details\": \"wrong user\"}`,
    },
    {
      name: "errors that say nothing as text",
      body: `{"errors":[{},null,7]}`,
      want: String.raw`{\"errors\":[{},null,7]}`,
    },
    { name: "text on one line", body: " a\r\n\tb ", want: "a b" },
    {
      name: "200 characters of long text",
      body: "é".repeat(201),
      want: `${"é".repeat(200)}…`,
    },
    {
      name: "text that is cut in a character",
      body: `a${"é".repeat(3000)}`,
      want: `a${"é".repeat(199)}…`,
    },
    { name: "nothing in an empty body", body: "", want: "" },
    { name: "nothing in text with a NUL", body: "a\0b", want: "" },
    {
      name: "nothing in bytes that are no text",
      body: Uint8Array.of(0x41, 0xff, 0xfe),
      want: "",
    },
  ])("finds $name", ({ body, want }) => {
    expect(registryWords(Buffer.from(body))).toBe(want);
  });

  it("looks at 4 KiB", () => {
    const body = Buffer.from(`${" ".repeat(4095)}ab`);

    expect(registryWords(body)).toBe("a");
  });

  it("survives JSON that is nested deeply", () => {
    const body = Buffer.from("[".repeat(4096));

    expect(registryWords(body)).toBe(`${"[".repeat(200)}…`);
  });

  it("breaks off an answer after 4 KiB", async () => {
    const answer = await answerWith(`${" ".repeat(4095)}a${" b".repeat(5000)}`);

    const words = await readRegistryWords(answer.response, []);

    expect(words).toBe("a");
    expect(answer.unfinished()).toBe(0);
  });

  it.each([
    { name: "a secret", body: errors({ code: "BAD", message: SECRET }) },
    { name: "the beginning of one", body: `got ${SECRET.slice(0, 16)}` },
  ])("has no words of an answer that repeats $name", async ({ body }) => {
    const { response } = await answerWith(body);

    expect(await readRegistryWords(response, ["other", SECRET])).toBe("");
  });

  it("passes over secrets that are empty", async () => {
    const { response } = await answerWith("words");

    expect(await readRegistryWords(response, [""])).toBe("words");
  });

  it("has no words of an answer that fails", async () => {
    const { response } = await answerWith("words");
    const failing = { [Symbol.asyncIterator]: () => ({ next: fail }) };

    expect(await readRegistryWords({ ...response, body: failing }, [])).toBe(
      "",
    );
  });
});

function errors(...list: readonly unknown[]): string {
  return JSON.stringify({ errors: list });
}

function fail(): Promise<never> {
  return Promise.reject(new Error("reset"));
}

async function answerWith(body: string) {
  const { send, unfinished } = scriptedSend(() => ({ status: 401, body }));
  const response = await send(
    {
      method: "GET",
      url: new URL("https://ghcr.io/v2/"),
      headers: {},
      body: null,
    },
    createRequestScope({ deadlineAtMs: Infinity }),
  );
  return { response, unfinished };
}
