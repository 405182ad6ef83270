import { describe, expect, it } from "vitest";
import {
  readBounded,
  readStart,
  streamBounded,
} from "../../../../src/loader/http/bounded-body.js";
import { answer } from "./doubles.js";

describe("loader/http/bounded-body", () => {
  it.each([
    { name: "nothing", chunks: [], maxBytes: 0, want: "" },
    {
      name: "as much as allowed",
      chunks: ["ab", "cd"],
      maxBytes: 4,
      want: "abcd",
    },
    { name: "empty pieces", chunks: ["", "ab", ""], maxBytes: 4, want: "ab" },
  ])("reads $name", async ({ chunks, maxBytes, want }) => {
    const response = answer({ chunks: chunks.map(bytes) });

    expect(text(await readBounded(response, maxBytes, "x"))).toBe(want);
  });

  it("reads more than it first has room for", async () => {
    const sizes = [1, 65_535, 1, 200_000, 7];
    const chunks = sizes.map((size, at) => new Uint8Array(size).fill(at + 1));
    const response = answer({ chunks });

    const got = await readBounded(response, 1_000_000, "x");

    expect(Buffer.concat(chunks).equals(got)).toBe(true);
    expect(got.buffer.byteLength).toBe(got.length);
  });

  it("breaks off a body that is too long, and takes no more of it", async () => {
    const response = answer({ chunks: ["ab", "cde", "f"].map(bytes) });

    await expect(
      readBounded(response, 4, "h.test: the token"),
    ).rejects.toMatchObject({
      code: "answer-too-large",
      message:
        "h.test: the token is too large, expected at most 4 bytes, got more",
    });
    expect(response).toMatchObject({ isBrokenOff: true, taken: 2 });
  });

  it.each([
    { lengths: ["5"], want: "got 5 bytes" },
    { lengths: ["1", "5"], want: "got 5 bytes" },
  ])(
    "does not begin a body announced with $lengths",
    async ({ lengths, want }) => {
      const response = answer({
        headers: { "content-length": lengths },
        chunks: [bytes("a")],
      });

      await expect(readBounded(response, 4, "x")).rejects.toMatchObject({
        code: "answer-too-large",
        message: expect.stringContaining(want) as string,
      });
      expect(response).toMatchObject({ discards: 1, taken: 0 });
    },
  );

  it.each(["4", "0", "-1", "junk"])(
    "counts all the same when announced with %s",
    async (length) => {
      const headers = { "content-length": [length] };
      const fitting = answer({ headers, chunks: [bytes("abcd")] });
      const tooLong = answer({ headers, chunks: [bytes("abcde")] });

      expect(text(await readBounded(fitting, 4, "x"))).toBe("abcd");
      await expect(readBounded(tooLong, 4, "x")).rejects.toMatchObject({
        code: "answer-too-large",
      });
    },
  );

  it("passes pieces on as they come, and breaks off with its reader", async () => {
    const response = answer({ chunks: ["ab", "cd", "ef"].map(bytes) });
    const got: string[] = [];

    for await (const chunk of streamBounded(response, 6, "x")) {
      got.push(text(chunk));
      if (got.length === 2) break;
    }

    expect(got).toEqual(["ab", "cd"]);
    expect(response).toMatchObject({ isBrokenOff: true, taken: 2 });
  });

  it("passes on no piece that goes past the bound", async () => {
    const got: string[] = [];
    const read = async () => {
      const response = answer({ chunks: ["ab", "cd"].map(bytes) });
      for await (const chunk of streamBounded(response, 3, "x"))
        got.push(text(chunk));
    };

    await expect(read()).rejects.toMatchObject({ code: "answer-too-large" });
    expect(got).toEqual(["ab"]);
  });

  it.each([
    {
      name: "all of a short body",
      chunks: ["ab", "c"],
      maxBytes: 4,
      want: "abc",
      isBrokenOff: false,
    },
    {
      name: "all of one that just fits",
      chunks: ["ab", "cd"],
      maxBytes: 4,
      want: "abcd",
      isBrokenOff: false,
    },
    {
      name: "the start of a longer one",
      chunks: ["ab", "cdef", "g"],
      maxBytes: 4,
      want: "abcd",
      isBrokenOff: true,
    },
  ])("starts with $name", async ({ chunks, maxBytes, want, isBrokenOff }) => {
    const response = answer({
      headers: { "content-length": ["1000"] },
      chunks: chunks.map(bytes),
    });

    expect(text(await readStart(response, maxBytes))).toBe(want);
    expect(response.isBrokenOff).toBe(isBrokenOff);
  });

  describe("of small pieces", () => {
    const ones = (count: number) =>
      Array.from({ length: count }, () => bytes("a"));

    it.each([
      { name: "one byte each", chunks: ones(10_100), wantTaken: 10_040 },
      // The first piece allows for 100 more.
      {
        name: "one byte each after a large one",
        chunks: [new Uint8Array(25_600), ...ones(10_200)],
        wantTaken: 10_140,
      },
      {
        name: "nothing",
        chunks: Array.from({ length: 10_100 }, () => bytes("")),
        wantTaken: 10_001,
      },
    ])(
      "breaks off a body of too many: $name",
      async ({ chunks, wantTaken }) => {
        const response = answer({ chunks });

        await expect(
          readBounded(response, 1_000_000, "h.test: the manifest"),
        ).rejects.toMatchObject({
          code: "answer-invalid",
          message: "h.test: the manifest comes in too small pieces",
        });
        expect(response).toMatchObject({
          isBrokenOff: true,
          taken: wantTaken,
        });
      },
    );

    it.each([
      { name: "10,000 of one byte, then the rest", chunks: ones(10_000) },
      {
        name: "13 bytes each",
        chunks: Array.from({ length: 10_082 }, () => bytes("a".repeat(13))),
      },
      { name: "as many as are allowed", chunks: ones(10_039) },
    ])("reads 128 KiB of few enough: $name", async ({ chunks }) => {
      const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      const rest = new Uint8Array(128 * 1024 - length).fill(97);
      const response = answer({ chunks: [...chunks, rest] });

      const got = await readBounded(response, 128 * 1024, "x");

      expect(text(got)).toBe("a".repeat(128 * 1024));
    });
  });

  it("throws what the body throws", async () => {
    const failure = new Error("reset");
    const broken = () => answer({ chunks: [bytes("a")], failure });

    await expect(readBounded(broken(), 4, "x")).rejects.toBe(failure);
    await expect(readStart(broken(), 4)).rejects.toBe(failure);
  });
});

function bytes(from: string): Uint8Array {
  return Buffer.from(from);
}

function text(of: Uint8Array): string {
  return Buffer.from(of).toString();
}
