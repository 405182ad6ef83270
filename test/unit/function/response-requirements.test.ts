import { performance } from "node:perf_hooks";

import { describe, expect, it } from "vitest";

import { scanRequest } from "../../../src/function/request.js";
import { hasUnmetRequirements } from "../../../src/function/response-requirements.js";
import { finishResponse } from "../../../src/function/response.js";
import { bytesField } from "../../../src/function/wire.js";
import { concat, requestBytes, responseBytes } from "./fixtures.js";

const name = (text: string) => bytesField(1, new TextEncoder().encode(text));
const empty = new Uint8Array();

/** What is asked for, and the request field that would carry it. */
const kinds = [
  { asked: "extraResources", carried: "extraResources" },
  { asked: "resources", carried: "requiredResources" },
  { asked: "schemas", carried: "requiredSchemas" },
] as const;

function asking(field: string, ...names: string[]): Uint8Array {
  const selector = { apiVersion: "v1", kind: "ConfigMap" };
  const entries = names.map((each) => [each, selector] as const);
  return responseBytes({
    requirements: { [field]: Object.fromEntries(entries) },
  });
}

function carrying(field: string, ...names: string[]): Uint8Array {
  const entries = names.map((each) => [each, {}] as const);
  return requestBytes({
    meta: { tag: "t" },
    [field]: Object.fromEntries(entries),
  });
}

describe("function/response-requirements", () => {
  for (const { asked, carried } of kinds) {
    it.each([
      { name: "not at all", request: carrying(carried), want: true },
      {
        name: "by another name",
        request: carrying(carried, "b"),
        want: true,
      },
      {
        name: "by a name that begins alike",
        request: carrying(carried, "aa", ""),
        want: true,
      },
      { name: "by its name", request: carrying(carried, "a"), want: false },
      {
        name: "among others",
        request: carrying(carried, "b", "a", "c"),
        want: false,
      },
    ])(`knows whether ${asked} are carried: $name`, ({ request, want }) => {
      expect(hasUnmetRequirements(asking(asked, "a"), request)).toBe(want);
    });

    for (const other of kinds.filter((kind) => kind.carried !== carried)) {
      it(`does not take ${other.carried} for ${asked}`, () => {
        const request = carrying(other.carried, "a");

        expect(hasUnmetRequirements(asking(asked, "a"), request)).toBe(true);
      });
    }
  }

  // One bit for each kind: asked for, and carried.
  const subsets = [0, 1, 2, 3, 4, 5, 6, 7];
  it.each(subsets.flatMap((ask) => subsets.map((carry) => ({ ask, carry }))))(
    "wants every kind that is asked for: $ask of $carry",
    ({ ask, carry }) => {
      const chosen = (subset: number) =>
        kinds.filter((_, index) => (subset >> index) & 1);
      const response = concat(
        ...chosen(ask).map(({ asked }) => asking(asked, "a")),
      );
      const request = concat(
        ...chosen(carry).map((kind) => carrying(kind.carried, "a")),
      );

      const isMet = (ask & carry) === ask;
      expect(hasUnmetRequirements(response, request)).toBe(!isMet);
    },
  );

  it.each([
    { name: "no requirements", response: responseBytes({ desired: {} }) },
    { name: "empty ones", response: responseBytes({ requirements: {} }) },
    {
      name: "ones no decoder knows",
      response: bytesField(5, bytesField(15, name("a"))),
    },
    {
      name: "a field of their number that is no message",
      response: Uint8Array.of(5 * 8, 1),
    },
    {
      name: "a map of their number that is none",
      response: bytesField(5, Uint8Array.of(2 * 8, 1)),
    },
  ])("finds nothing unmet in $name", ({ response }) => {
    expect(hasUnmetRequirements(response, requestBytes())).toBe(false);
  });

  it.each([
    {
      name: "of an entry with two keys the last",
      response: bytesField(5, bytesField(2, concat(name("a"), name("b")))),
      request: carrying("requiredResources", "b"),
    },
    {
      name: "an entry without a key as one of the empty name",
      response: bytesField(5, bytesField(2, empty)),
      request: bytesField(8, bytesField(2, empty)),
    },
    {
      name: "requirements in several pieces",
      response: concat(asking("resources", "a"), asking("resources", "b")),
      request: carrying("requiredResources", "a", "b"),
    },
    {
      name: "a key behind its value",
      response: asking("schemas", "a"),
      request: bytesField(9, concat(bytesField(2, empty), name("a"))),
    },
    {
      name: "a name that is no text",
      response: bytesField(
        5,
        bytesField(2, bytesField(1, Uint8Array.of(0xff))),
      ),
      request: bytesField(8, bytesField(1, Uint8Array.of(0xff))),
    },
    {
      name: "what was looked for and not found",
      response: asking("resources", "a"),
      request: bytesField(8, name("a")),
    },
  ])("reads as decoders do: $name", ({ response, request }) => {
    expect(hasUnmetRequirements(response, request)).toBe(false);
    expect(hasUnmetRequirements(response, carrying("context"))).toBe(true);
  });

  it.each([
    {
      name: "a response that is cut off",
      response: bytesField(5, Uint8Array.of(0x0a)),
      request: carrying("requiredResources", "a"),
    },
    {
      name: "a request that is",
      response: asking("resources", "a"),
      request: bytesField(8, concat(name("a"), Uint8Array.of(0x12))),
    },
  ])("takes for unmet $name", ({ response, request }) => {
    expect(hasUnmetRequirements(response, request)).toBe(true);
  });

  const entry = bytesField(2, empty);
  it.each([
    {
      name: "a response",
      response: (count: number) =>
        bytesField(5, Buffer.alloc(entry.length * count, entry)),
      request: () => bytesField(8, empty),
      // With the field that holds them.
      last: 99_999,
    },
    {
      name: "a request",
      response: () => asking("resources", "a"),
      request: (count: number) =>
        concat(
          Buffer.alloc(entry.length * count, entry),
          bytesField(8, name("a")),
        ),
      // With the last one and its key.
      last: 99_998,
    },
  ])("looks at 100,000 fields of $name", ({ response, request, last }) => {
    const isUnmet = (count: number) =>
      hasUnmetRequirements(response(count), request(count));

    expect(isUnmet(last)).toBe(false);
    expect(isUnmet(last + 1)).toBe(true);
  });

  it("is done at once with millions", () => {
    const response = asking("resources", "a");
    const entries = Buffer.alloc(entry.length * 2_000_000, entry);

    const startedMs = performance.now();
    expect(hasUnmetRequirements(response, entries)).toBe(true);
    expect(hasUnmetRequirements(bytesField(5, entries), entries)).toBe(true);

    expect(performance.now() - startedMs).toBeLessThan(500);
  });

  it("does not look at a request for an answer with a meta, or without requirements", () => {
    const request = {
      ...scanRequest(requestBytes()),
      get bytes(): Uint8Array {
        throw new Error("looked at");
      },
    };
    const finish = (response: Uint8Array) =>
      finishResponse(response, { request, ttlNanos: 1n }, "Path a.wasm");

    expect(() => finish(asking("resources", "a"))).toThrow("looked at");
    expect(() => finish(responseBytes({ desired: {} }))).not.toThrow();
    expect(() =>
      finish(
        concat(asking("resources", "a"), responseBytes({ meta: { tag: "" } })),
      ),
    ).not.toThrow();
  });
});
