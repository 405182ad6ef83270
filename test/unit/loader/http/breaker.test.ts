import { describe, expect, it } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { breaking } from "../../../../src/loader/http/breaker.js";
import type { HttpResponse } from "../../../../src/loader/http/transport.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { handClock } from "../store/fixtures.js";
import { answer, endless, get, scripted } from "./doubles.js";

const silence = new LoaderError("registry-unreachable", "h.test: reset");

describe("loader/http/breaker", () => {
  it("leaves a server alone for 5 s that gave no answer", async () => {
    const { ask, clock, asked } = breaker(silence, answer());

    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(4_999);
    await expect(ask("https://h.test/b")).rejects.toMatchObject({
      name: "LoaderError",
      code: "registry-unreachable",
      message: "h.test: reset (5 s ago, asked again after 5 s)",
      cause: silence,
    });
    expect(asked).toHaveLength(1);
  });

  it("says how long ago that was", async () => {
    const { ask, clock } = breaker(silence);

    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(1_400);

    await expect(ask("https://h.test/a")).rejects.toThrow("(1 s ago,");
  });

  it("does not begin the 5 s anew with each request that it turns away", async () => {
    const last = answer();
    const { ask, clock } = breaker(silence, last);

    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(4_000);
    await expect(ask("https://h.test/a")).rejects.toThrow("(4 s ago,");
    clock.advance(1_000);

    expect(await ask("https://h.test/a")).toBe(last);
  });

  it("asks as ever once the server has answered again", async () => {
    const { ask, clock, asked } = breaker(silence, answer(), answer());

    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(5_000);
    await ask("https://h.test/a");
    await ask("https://h.test/a");

    expect(asked).toHaveLength(3);
  });

  it("leaves it alone again when it still gives no answer", async () => {
    const again = new LoaderError("registry-unreachable", "h.test: refused");
    const { ask, clock, asked } = breaker(silence, again);

    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(5_000);
    await expect(ask("https://h.test/a")).rejects.toBe(again);
    await expect(ask("https://h.test/a")).rejects.toMatchObject({
      message: "h.test: refused (0 s ago, asked again after 5 s)",
      cause: again,
    });

    expect(asked).toHaveLength(2);
  });

  it.each([
    { name: "another host", url: "https://other.test/a" },
    { name: "another port", url: "https://h.test:8443/a" },
    { name: "another scheme", url: "http://h.test/a" },
  ])("asks $name meanwhile", async ({ url }) => {
    const last = answer();
    const { ask } = breaker(silence, last);

    await expect(ask("https://h.test/a")).rejects.toBe(silence);

    expect(await ask(url)).toBe(last);
  });

  it.each([401, 404, 429, 500, 503])(
    "takes a status %d for an answer",
    async (status) => {
      const first = answer({ status });
      const last = answer();
      const { ask } = breaker(first, last);

      expect(await ask("https://h.test/a")).toBe(first);
      expect(await ask("https://h.test/a")).toBe(last);
    },
  );

  it.each([
    new LoaderError("resolve-cancelled", "x"),
    new LoaderError("tls-failed", "x"),
    new LoaderError("answer-invalid", "x"),
    new LoaderError("plain-http-refused", "x"),
    new Error("a fault of ours"),
  ])("does not take %s for silence", async (error) => {
    const last = answer();
    const { ask } = breaker(error, last);

    await expect(ask("https://h.test/a")).rejects.toBe(error);

    expect(await ask("https://h.test/a")).toBe(last);
  });

  describe.each([
    // Timers come early: Node cuts off fractions of a millisecond, and counts from the turn's begin.
    { name: "as its deadline passes", endsAtMs: 5_000 },
    { name: "as the deadline's timer fires, a bit early", endsAtMs: 4_998 },
    { name: "some time after its deadline", endsAtMs: 5_400 },
  ])("without an answer $name", ({ endsAtMs }) => {
    it.each([
      { hadMs: 1, isLeftAlone: false },
      { hadMs: 1_990, isLeftAlone: false },
      { hadMs: 2_000, isLeftAlone: true },
      { hadMs: 4_900, isLeftAlone: true },
    ])(
      "a server that had $hadMs ms is left alone: $isLeftAlone",
      async ({ hadMs, isLeftAlone }) => {
        expect(await isLeftAloneAfter(endsAtMs - hadMs, endsAtMs)).toBe(
          isLeftAlone,
        );
      },
    );
  });

  it.each([
    { askedAtMs: 0, endsAtMs: 1 },
    { askedAtMs: 4_000, endsAtMs: 4_500 },
  ])(
    "leaves a server alone that breaks off before the deadline, after $endsAtMs ms",
    async ({ askedAtMs, endsAtMs }) => {
      expect(await isLeftAloneAfter(askedAtMs, endsAtMs)).toBe(true);
    },
  );

  describe("of a server that answered anybody in the last 90 s", () => {
    it("leaves alone only the path that gets no answer", async () => {
      const others = answer();
      const { ask, clock, asked } = breaker(
        answer(),
        silence,
        others,
        answer(),
      );
      await ask("https://h.test/a");
      clock.advance(89_999);

      await expect(ask("https://h.test/hangs")).rejects.toBe(silence);

      await expect(ask("https://h.test/hangs?x=1")).rejects.toThrow("s ago");
      expect(await ask("https://h.test/a")).toBe(others);
      clock.advance(5_000);
      await ask("https://h.test/hangs");
      expect(asked).toHaveLength(4);
    });

    it("counts an answer that came while another path got none", async () => {
      const clock = handClock();
      const last = answer();
      const ask = breaking(async ({ url }) => {
        if (url.pathname !== "/hangs") return last;
        // Both were asked at once.
        await ask(get("https://h.test/a"), endless());
        throw silence;
      }, clock);

      await expect(ask(get("https://h.test/hangs"), endless())).rejects.toBe(
        silence,
      );

      expect(await ask(get("https://h.test/a"), endless())).toBe(last);
    });

    it("leaves all of it alone after that", async () => {
      const { ask, clock } = breaker(answer(), silence);
      await ask("https://h.test/a");
      clock.advance(90_000);

      await expect(ask("https://h.test/hangs")).rejects.toBe(silence);

      await expect(ask("https://h.test/a")).rejects.toThrow("s ago");
    });

    it("takes no other server's answer for one of its own", async () => {
      const { ask } = breaker(answer(), silence);
      await ask("https://other.test/a");

      await expect(ask("https://h.test/hangs")).rejects.toBe(silence);

      await expect(ask("https://h.test/a")).rejects.toThrow("s ago");
    });
  });

  it("does not forget that a server was silent when another one comes too late to it", async () => {
    const last = answer();
    const { ask, clock, asked } = breaker(silence, last);
    await expect(ask("https://h.test/a")).rejects.toBe(silence);
    clock.advance(4_999);

    await expect(
      ask("https://h.test/a", createRequestScope({ deadlineAtMs: 5_000 })),
    ).rejects.toThrow("s ago");

    expect(asked).toHaveLength(1);
  });

  it("remembers no more than 1000 servers", async () => {
    const failures = Array.from({ length: 1_001 }, () => silence);
    const { ask, asked } = breaker(...failures, answer());

    for (const at of failures.keys())
      await expect(ask(`https://h${at}.test/`)).rejects.toBe(silence);

    await expect(ask("https://h1.test/")).rejects.toThrow("s ago");
    await expect(ask("https://h1000.test/")).rejects.toThrow("s ago");
    await ask("https://h0.test/");
    expect(asked).toHaveLength(1_002);
  });

  it("passes request and scope on", async () => {
    const scope = endless();
    const request = get("https://h.test/a");
    const given: unknown[] = [];

    await breaking((...call) => {
      given.push(...call);
      return Promise.resolve(answer());
    }, handClock())(request, scope);

    expect(given[0]).toBe(request);
    expect(given[1]).toBe(scope);
  });
});

/** Whether a server is, of which no answer came until `endsAtMs` within a deadline of 5 s. */
async function isLeftAloneAfter(
  askedAtMs: number,
  endsAtMs: number,
): Promise<boolean> {
  const clock = handClock();
  const last = answer();
  const send = scripted(silence, last);
  const ask = breaking(async (request, scope) => {
    clock.advance(Math.max(0, endsAtMs - clock.monotonicMs()));
    return await send(request, scope);
  }, clock);
  clock.advance(askedAtMs);
  const scope = createRequestScope({ deadlineAtMs: 5_000 });
  await expect(ask(get("https://h.test/a"), scope)).rejects.toBe(silence);

  const second = await ask(get("https://h.test/a"), endless()).catch(
    (thrown: unknown) => thrown,
  );

  return second !== last;
}

function breaker(...script: readonly (HttpResponse | Error)[]) {
  const clock = handClock();
  const send = scripted(...script);
  const guarded = breaking(send, clock);
  return {
    ask: (url: string, scope = endless()) => guarded(get(url), scope),
    asked: send.requests,
    clock,
  };
}
