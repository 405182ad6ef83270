import { describe, expect, it } from "vitest";
import {
  readRegistryWords,
  registryWords,
  wordsWithout,
} from "../../../../src/loader/oci/registry-words.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { scriptedSend } from "./scripted-send.js";

const SECRET = "hunter2-of-more-than-sixteen-units";

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
      name: "the details of Docker Hub's token server",
      body: `{"details": "wrong  user"}`,
      want: "wrong user",
    },
    { name: "no full stop", body: errors({ message: "no." }), want: "no" },
    {
      name: "nothing in JSON of another shape",
      body: `{"secret": "hunter2 of another server"}`,
      want: "",
    },
    {
      name: "nothing in errors that say nothing",
      body: `{"errors":[{},null,7]}`,
      want: "",
    },
    { name: "nothing in other text", body: "<h1>the intranet</h1>", want: "" },
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
    const body = errors({ code: "A", message: "m" });
    const padded = (length: number) =>
      Buffer.from(" ".repeat(length - body.length) + body);

    expect(registryWords(padded(4096))).toBe("A: m");
    expect(registryWords(padded(4097))).toBe("");
  });

  it("survives JSON that is nested deeply", () => {
    expect(registryWords(Buffer.from("[".repeat(4096)))).toBe("");
  });

  it("breaks off an answer after 4 KiB", async () => {
    const answer = await answerWith(" b".repeat(5000));

    expect(await readRegistryWords(answer.response, [])).toBe("");
    expect(answer.unfinished()).toBe(0);
  });

  it.each([
    { name: "a secret", body: errors({ code: "BAD", message: SECRET }) },
    {
      name: "the beginning of one",
      body: errors({ code: SECRET.slice(0, 16) }),
    },
  ])("has no words of an answer that repeats $name", async ({ body }) => {
    const { response } = await answerWith(body);

    expect(await readRegistryWords(response, ["other", SECRET])).toBe("");
  });

  it.each([
    {
      name: "as Go writes JSON",
      body: String.raw`p\u0026ss \u003chunter2\u003E`,
    },
    { name: "with slashes escaped", body: String.raw`p&ss <hunter\/2>` },
    {
      name: "as any reader would undo it",
      body: String.raw`\u0070&ss <hunter2>`,
    },
    { name: "in a form", body: "refresh_token=p%26ss+%3Chunter2%3E" },
  ])("has no words of an answer that repeats a secret $name", ({ body }) => {
    const answer = Buffer.from(`{"errors":[{"code":"A","message":"${body}"}]}`);
    const secrets = ["p&ss <hunter2>", "p&ss <hunter/2>", "p&ss \ud800"];

    expect(wordsWithout(answer, ["other"])).not.toBe("");
    expect(wordsWithout(answer, secrets)).toBe("");
  });

  it("has no words of an answer that repeats a secret with quotes in it", () => {
    const secret = String.raw`a"\hunter2`;
    const answer = Buffer.from(errors({ code: "A", message: secret }));

    expect(wordsWithout(answer, ["other"])).not.toBe("");
    expect(wordsWithout(answer, [secret])).toBe("");
  });

  it("passes over secrets that are empty", async () => {
    const { response } = await answerWith(errors({ code: "WORDS" }));

    expect(await readRegistryWords(response, [""])).toBe("WORDS");
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
