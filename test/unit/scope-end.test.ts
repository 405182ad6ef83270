import { getEventListeners } from "node:events";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import { startTimer, whenOver } from "../../src/request-scope.js";
import { createRequestScope } from "../../src/request-scope.js";
import { clock, scope } from "../support/engine.js";
import { useFakeTime } from "./engine/fixtures.js";

const LONGEST_TIMER_MS = 2_147_483_647;

beforeEach(useFakeTime);
afterEach(() => {
  vi.useRealTimers();
});

describe("request-scope whenOver", () => {
  it("says deadline when it passes, not before", () => {
    const over = vi.fn();
    whenOver(scope(1_000), clock, over);

    vi.advanceTimersByTime(999);
    expect(over).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);

    expect(over.mock.calls).toEqual([["deadline"]]);
  });

  it("says cancelled as soon as the caller goes", () => {
    const caller = new AbortController();
    const over = vi.fn();
    whenOver(scope(1_000, caller.signal), clock, over);

    caller.abort();

    expect(over.mock.calls).toEqual([["cancelled"]]);
  });

  it("says the same of a scope without a signal", () => {
    const caller = createRequestScope({
      deadlineAtMs: clock.monotonicMs() + 1_000,
    });
    const over = vi.fn();
    const overLater = vi.fn();
    whenOver(caller, clock, over);

    caller.cancel();
    whenOver(caller, clock, overLater);

    expect(over.mock.calls).toEqual([["cancelled"]]);
    expect(overLater).not.toHaveBeenCalled();
    vi.advanceTimersByTime(5_000);
    expect(over).toHaveBeenCalledTimes(1);
    expect(overLater.mock.calls).toEqual([["cancelled"]]);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("never calls twice, whatever happens later", () => {
    const caller = new AbortController();
    const over = vi.fn();
    whenOver(scope(1_000, caller.signal), clock, over);

    caller.abort();
    vi.advanceTimersByTime(5_000);
    const afterDeadline = vi.fn();
    const late = new AbortController();
    whenOver(scope(10, late.signal), clock, afterDeadline);
    vi.advanceTimersByTime(10);
    late.abort();

    expect(over).toHaveBeenCalledTimes(1);
    expect(afterDeadline.mock.calls).toEqual([["deadline"]]);
  });

  it.each([
    {
      name: "a caller that had gone before",
      make: () => scope(Infinity, AbortSignal.abort()),
      want: "cancelled",
    },
    {
      name: "a caller that had gone, its deadline past as well",
      make: () => scope(-1, AbortSignal.abort()),
      want: "cancelled",
    },
    {
      name: "a deadline in the past",
      make: () => scope(-1_000),
      want: "deadline",
    },
    { name: "a deadline now", make: () => scope(0), want: "deadline" },
    {
      name: "a deadline infinitely long ago",
      make: () => scope(-Infinity),
      want: "deadline",
    },
  ])("calls for $name, but not from inside", ({ make, want }) => {
    const over = vi.fn();

    whenOver(make(), clock, over);

    expect(over).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(over.mock.calls).toEqual([[want]]);
  });

  it("says cancelled when the caller goes at its deadline", () => {
    const caller = new AbortController();
    const over = vi.fn();
    whenOver(scope(0, caller.signal), clock, over);

    caller.abort();
    vi.advanceTimersByTime(1);

    expect(over.mock.calls).toEqual([["cancelled"]]);
  });

  it.each([
    { name: "none", deadlineMs: Infinity },
    { name: "one further than Node counts", deadlineMs: LONGEST_TIMER_MS + 1 },
  ])("does not take a far deadline for a near one: $name", ({ deadlineMs }) => {
    const caller = new AbortController();
    const over = vi.fn();
    whenOver(scope(deadlineMs, caller.signal), clock, over);

    vi.advanceTimersByTime(60_000);
    expect(over).not.toHaveBeenCalled();
    caller.abort();

    expect(over.mock.calls).toEqual([["cancelled"]]);
  });

  it("is silent once stopped, and leaves nothing behind", () => {
    const caller = new AbortController();
    const over = vi.fn();
    const stop = whenOver(scope(1_000, caller.signal), clock, over);

    stop();
    stop();
    caller.abort();
    vi.advanceTimersByTime(5_000);

    expect(over).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it.each([
    { name: "it was stopped", end: (stop: () => void) => stop() },
    { name: "the deadline passed", end: () => vi.advanceTimersByTime(1_000) },
  ])("listens to the caller no longer once $name", ({ end }) => {
    const caller = new AbortController();
    const stop = whenOver(scope(1_000, caller.signal), clock, vi.fn());
    expect(getEventListeners(caller.signal, "abort")).toHaveLength(1);

    end(stop);

    expect(getEventListeners(caller.signal, "abort")).toHaveLength(0);
  });

  it("holds no timer once the caller has gone", () => {
    const caller = new AbortController();
    whenOver(scope(1_000, caller.signal), clock, vi.fn());

    caller.abort();

    expect(vi.getTimerCount()).toBe(0);
  });
});

describe("request-scope startTimer", () => {
  it("fires once after its delay", () => {
    const fire = vi.fn();
    startTimer(50, fire);

    vi.advanceTimersByTime(49);
    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1_000);

    expect(fire).toHaveBeenCalledTimes(1);
  });

  it.each([0, -1, -Infinity])("fires at once for a delay of %d", (delayMs) => {
    const fire = vi.fn();

    startTimer(delayMs, fire);

    expect(fire).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(fire).toHaveBeenCalledTimes(1);
  });

  it("counts as far as Node does, and starts no timer beyond", () => {
    startTimer(LONGEST_TIMER_MS, vi.fn());
    expect(vi.getTimerCount()).toBe(1);

    startTimer(LONGEST_TIMER_MS + 1, vi.fn())();
    startTimer(Infinity, vi.fn())();

    expect(vi.getTimerCount()).toBe(1);
  });

  it("does not fire once stopped", () => {
    const fire = vi.fn();

    startTimer(50, fire)();
    vi.advanceTimersByTime(100);

    expect(fire).not.toHaveBeenCalled();
  });
});
