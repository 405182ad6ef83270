import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { sleep } from "../../../../src/loader/http/wait.js";
import { createRequestScope } from "../../../../src/request-scope.js";

describe("loader/http/wait", () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("waits as long as it was told", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    let isOver = false;
    const waiting = sleep(1_000, scope).then(() => {
      isOver = true;
    });

    await vi.advanceTimersByTimeAsync(999);
    expect(isOver).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await waiting;
  });

  it("ends with its scope, and leaves no timer", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const waiting = sleep(1_000, scope);

    scope.cancel();

    await expect(waiting).rejects.toMatchObject({ code: "resolve-cancelled" });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("does not wait for one who has gone", async () => {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    scope.cancel();

    await expect(sleep(1_000, scope)).rejects.toMatchObject({
      code: "resolve-cancelled",
    });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("leaves nothing behind in its scope", async () => {
    const unsubscribe = vi.fn();
    const scope = {
      ...createRequestScope({ deadlineAtMs: Infinity }),
      cancelled: false,
      onCancel: () => unsubscribe,
    };
    const waiting = sleep(1, scope);

    await vi.advanceTimersByTimeAsync(1);
    await waiting;

    expect(unsubscribe).toHaveBeenCalledOnce();
  });
});
