import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LoaderError } from "../../../../src/loader/error.js";
import { answeringWithin } from "../../../../src/loader/http/answering-within.js";
import type { Send } from "../../../../src/loader/http/transport.js";
import { refuse } from "../../../../src/loader/refuse.js";
import type { RequestScope } from "../../../../src/ports.js";
import { createRequestScope } from "../../../../src/request-scope.js";
import { answer, endless, get } from "./doubles.js";

const request = get("https://h.test:8443/a?hunter2");
const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
});

describe("loader/http/answering-within", () => {
  it("gives up on a server that does not begin to answer", async () => {
    const send = answeringWithin(silent().send, 30_000, clock);

    const outcome = outcomeOf(send(request, endless()));
    await vi.advanceTimersByTimeAsync(29_999);
    expect(outcome.isSettled).toBe(false);
    await vi.advanceTimersByTimeAsync(1);

    expect(outcome.error).toMatchObject({
      name: "LoaderError",
      code: "registry-unreachable",
      message: "h.test:8443: no answer within 30 s",
      cause: { code: "resolve-cancelled" },
    });
  });

  it("leaves a deadline that comes first to whoever watches that", async () => {
    const scope = createRequestScope({
      deadlineAtMs: clock.monotonicMs() + 5_000,
    });
    const server = silent();

    const outcome = outcomeOf(
      answeringWithin(server.send, 30_000, clock)(request, scope),
    );
    await vi.advanceTimersByTimeAsync(60_000);

    expect(outcome.error).toBeUndefined();
    expect(server.scopes.map(({ cancelled }) => cancelled)).toEqual([false]);
    expect(server.scopes[0]?.deadlineAtMs).toBe(scope.deadlineAtMs);
  });

  it("lets the body of an answer that has begun take its time", async () => {
    const { send, scopes } = silent(answer());

    const response = await answeringWithin(
      send,
      30_000,
      clock,
    )(request, endless());
    await vi.advanceTimersByTimeAsync(60_000);

    expect(response.status).toBe(200);
    expect(scopes[0]?.cancelled).toBe(false);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("cancels the body when the caller goes away", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const { send, scopes } = silent(answer());

    await answeringWithin(send, 30_000, clock)(request, scope);
    scope.cancel();

    expect(scopes[0]?.cancelled).toBe(true);
  });

  it("passes on that the caller has gone, which is no silence of the server's", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const send = answeringWithin(silent().send, 30_000, clock);

    const outcome = outcomeOf(send(request, scope));
    scope.cancel();
    await vi.advanceTimersByTimeAsync(0);

    expect(outcome.error).toMatchObject({ code: "resolve-cancelled" });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("asks with a scope that is over for a caller who has gone already", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    scope.cancel();
    const { send, scopes } = silent();

    const outcome = outcomeOf(
      answeringWithin(send, 30_000, clock)(request, scope),
    );
    await vi.advanceTimersByTimeAsync(0);

    expect(scopes[0]?.cancelled).toBe(true);
    expect(outcome.error).toMatchObject({ code: "resolve-cancelled" });
  });

  it.each([
    new LoaderError("tls-failed", "x"),
    new LoaderError("resolve-cancelled", "the client was closed"),
    new Error("a fault of ours"),
  ])("passes on what sending throws: %s", async (error) => {
    const send = answeringWithin(() => Promise.reject(error), 30_000, clock);

    await expect(send(request, endless())).rejects.toBe(error);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not take another failure for lateness, even when it is late", async () => {
    const reset = new LoaderError("answer-invalid", "h.test: no HTTP");
    const send = answeringWithin(
      (_, scope) =>
        new Promise((_resolve, reject) => {
          scope.onCancel(() => {
            reject(reset);
          });
        }),
      30_000,
      clock,
    );

    const outcome = outcomeOf(send(request, endless()));
    await vi.advanceTimersByTimeAsync(30_000);

    expect(outcome.error).toBe(reset);
  });

  it("no longer listens to a scope whose request has failed", async () => {
    const { scope, listeners } = countingScope();
    const send = answeringWithin(
      () => Promise.reject(new LoaderError("tls-failed", "x")),
      30_000,
      clock,
    );

    await expect(send(request, scope)).rejects.toThrow("x");

    expect(listeners()).toBe(0);
  });

  it("passes the request and the deadline on", async () => {
    const scope = createRequestScope({
      deadlineAtMs: clock.monotonicMs() + 5_000,
    });
    const { send, scopes, requests } = silent(answer());

    await answeringWithin(send, 30_000, clock)(request, scope);

    expect(requests).toEqual([request]);
    expect(scopes[0]?.deadlineAtMs).toBe(scope.deadlineAtMs);
  });
});

/** Gives the answer, or none until its scope is cancelled. */
function silent(response?: ReturnType<typeof answer>) {
  const scopes: RequestScope[] = [];
  const requests: unknown[] = [];
  const send: Send = (asked, scope) => {
    requests.push(asked);
    scopes.push(scope);
    if (response !== undefined) return Promise.resolve(response);
    return new Promise((_, reject) => {
      const leave = (): void => {
        reject(refuse("resolve-cancelled", "the request ended meanwhile"));
      };
      if (scope.cancelled) leave();
      scope.onCancel(leave);
    });
  };
  return { send, scopes, requests };
}

/** What became of a promise, as far as it is known. */
function outcomeOf(work: Promise<unknown>) {
  const outcome: { isSettled: boolean; error: unknown } = {
    isSettled: false,
    error: undefined,
  };
  work.then(
    () => {
      outcome.isSettled = true;
    },
    (thrown: unknown) => {
      outcome.isSettled = true;
      outcome.error = thrown;
    },
  );
  return outcome;
}

/** A scope that tells how many listen to it. */
function countingScope() {
  let count = 0;
  const scope: RequestScope = {
    deadlineAtMs: Infinity,
    signal: new AbortController().signal,
    cancelled: false,
    onCancel() {
      count += 1;
      return () => {
        count -= 1;
      };
    },
  };
  return { scope, listeners: () => count };
}
