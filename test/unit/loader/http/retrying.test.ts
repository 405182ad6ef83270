import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { retrying } from "../../../../src/loader/http/retrying.js";
import type {
  HttpResponse,
  Send,
} from "../../../../src/loader/http/transport.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { answer, get, scripted } from "./doubles.js";

const unreachable = new LoaderError("registry-unreachable", "h.test: reset");
const YEAR_2000_MS = Date.UTC(2000, 0, 1);

describe("loader/http/retrying", () => {
  it.each([408, 429, 500, 502, 503, 504])(
    "asks again after %d",
    async (status) => {
      const first = answer({ status });
      const last = answer();

      const { result, pausesMs } = await run([first, last]);

      expect(result).toBe(last);
      expect(first.discards).toBe(1);
      expect(last.discards).toBe(0);
      expect(pausesMs).toEqual([150]);
    },
  );

  it("asks again after no connection", async () => {
    const last = answer();

    expect((await run([unreachable, last])).result).toBe(last);
  });

  it.each([200, 302, 400, 401, 404, 410, 501, 505])(
    "does not ask again after %d",
    async (status) => {
      const first = answer({ status });

      expect((await run([first])).result).toBe(first);
      expect(first.discards).toBe(0);
    },
  );

  it.each([
    new LoaderError("tls-failed", "x"),
    new LoaderError("resolve-cancelled", "x"),
    new LoaderError("answer-invalid", "x"),
    new Error("a fault of ours"),
  ])("does not ask again after %s", async (error) => {
    await expect(run([error])).rejects.toBe(error);
  });

  it.each(["POST", "PATCH"] as const)(
    "does not repeat a %s",
    async (method) => {
      const first = answer({ status: 503 });

      expect((await run([first], { method })).result).toBe(first);
      await expect(run([unreachable], { method })).rejects.toBe(unreachable);
    },
  );

  it.each(["HEAD", "PUT"] as const)("repeats a %s", async (method) => {
    const last = answer();

    expect((await run([unreachable, last], { method })).result).toBe(last);
  });

  it("gives back the third answer, and throws the third error", async () => {
    const bad = () => answer({ status: 503 });
    const third = bad();

    const { result, pausesMs } = await run([bad(), unreachable, third]);

    expect(result).toBe(third);
    expect(third.discards).toBe(0);
    expect(pausesMs).toEqual([150, 300]);
    await expect(run([bad(), bad(), unreachable])).rejects.toBe(unreachable);
  });

  it.each([
    { random: 0, want: [100, 200] },
    { random: 1, want: [200, 400] },
  ])("leaves its pauses to chance: $random", async ({ random, want }) => {
    const { pausesMs } = await run([unreachable, unreachable, answer()], {
      random,
    });

    expect(pausesMs).toEqual(want);
  });

  it.each([
    { retryAfter: "2", want: 2_000 },
    { retryAfter: "60", want: 60_000 },
    { retryAfter: "Sat, 01 Jan 2000 00:00:30 GMT", want: 30_000 },
    { retryAfter: "0", want: 150 },
    { retryAfter: "Fri, 31 Dec 1999 23:59:59 GMT", want: 150 },
    { retryAfter: "nonsense", want: 150 },
  ])(
    "waits as long as the server asks: $retryAfter",
    async ({ retryAfter, want }) => {
      const busy = answer({
        status: 429,
        headers: { "retry-after": [retryAfter] },
      });

      expect((await run([busy, answer()])).pausesMs).toEqual([want]);
    },
  );

  it("never waits longer than a minute", async () => {
    const busy = answer({ status: 429, headers: { "retry-after": ["61"] } });

    const { result, pausesMs } = await run([busy]);

    expect(result).toBe(busy);
    expect(pausesMs).toEqual([]);
  });

  it.each([
    { name: "fits", leftMs: 2_100, wantPausesMs: [2_000] },
    { name: "does not fit", leftMs: 2_099, wantPausesMs: [] },
  ])(
    "waits only if what the server asks $name",
    async ({ leftMs, wantPausesMs }) => {
      const busy = answer({ status: 429, headers: { "retry-after": ["2"] } });

      const { result, pausesMs } = await run([busy, answer()], { leftMs });

      expect(pausesMs).toEqual(wantPausesMs);
      expect(result.status).toBe(wantPausesMs.length === 0 ? 429 : 200);
      expect(busy.discards).toBe(wantPausesMs.length);
    },
  );

  it("does not ask again when the time is up", async () => {
    await expect(run([unreachable], { leftMs: 249 })).rejects.toBe(unreachable);
  });

  it("does not ask again after a failure that took two seconds, but does before", async () => {
    const last = answer();

    await expect(run([unreachable, last], { attemptMs: 2_000 })).rejects.toBe(
      unreachable,
    );
    expect((await run([unreachable, last], { attemptMs: 1_999 })).result).toBe(
      last,
    );
  });

  it("asks again after a status however long that took", async () => {
    const last = answer();

    const { result } = await run([answer({ status: 503 }), last], {
      attemptMs: 10_000,
    });

    expect(result).toBe(last);
  });

  it("stops when waiting is cut short", async () => {
    const cancelled = new LoaderError("resolve-cancelled", "x");

    await expect(run([unreachable], { sleepFails: cancelled })).rejects.toBe(
      cancelled,
    );
  });
});

async function run(
  script: readonly (HttpResponse | Error)[],
  options: {
    method?: "HEAD" | "PATCH" | "POST" | "PUT";
    leftMs?: number;
    random?: number;
    sleepFails?: Error;
    attemptMs?: number;
  } = {},
): Promise<{ result: HttpResponse; pausesMs: number[] }> {
  const { method = "GET", leftMs = Infinity, random = 0.5 } = options;
  const { attemptMs = 0 } = options;
  const startMs = 5_000;
  let nowMs = startMs;
  const pausesMs: number[] = [];
  const scope = createRequestScope({ deadlineAtMs: startMs + leftMs });
  const send = scripted(...script);
  const request = get("https://h.test/a", { method });
  const slowly: Send = (...asked) => {
    nowMs += attemptMs;
    return send(...asked);
  };
  const result = await retrying(slowly, {
    clock: { nowMs: () => YEAR_2000_MS, monotonicMs: () => nowMs },
    sleep(ms, given) {
      expect(given).toBe(scope);
      pausesMs.push(ms);
      nowMs += ms;
      return options.sleepFails === undefined
        ? Promise.resolve()
        : Promise.reject(options.sleepFails);
    },
    random: () => random,
  })(request, scope);
  for (const sent of send.requests) expect(sent).toBe(request);
  return { result, pausesMs };
}
