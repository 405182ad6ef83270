import { describe, expect, it, vi } from "vitest";
import { AdmissionError } from "../../../src/admission/error.js";
import { LoaderError } from "../../../src/loader/error.js";
import { createFlights } from "../../../src/loader/flights.js";
import type { RequestScope } from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { handClock } from "./store/fixtures.js";

const failure = new LoaderError("module-not-found", "there is none");

describe("loader/flights", () => {
  it("does the work once for all who ask meanwhile", async () => {
    const { share, works } = flights();

    const first = share("a");
    const second = share("a");
    works[0]?.land("brought");

    expect(await Promise.all([first, second])).toEqual(["brought", "brought"]);
    expect(works).toHaveLength(1);
  });

  it("does different work side by side", async () => {
    const { share, works } = flights();

    const first = share("a");
    const second = share("b");
    works[1]?.land("b's");
    works[0]?.land("a's");

    expect(await Promise.all([first, second])).toEqual(["a's", "b's"]);
  });

  it("does not remember what the work brought", async () => {
    const { share, works } = flights();

    const first = share("a");
    works[0]?.land("old");
    await first;
    const second = share("a");
    works[1]?.land("new");

    expect(await second).toBe("new");
  });

  it("gives the work its own budget, whatever the deadline of who began it", async () => {
    const { share, works, clock } = flights({ budgetMs: 600_000 });
    clock.advance(1_000);

    const waiting = share("a", within(clock, 5));
    const { deadlineAtMs } = works[0]?.scope ?? {};

    await expect(waiting).rejects.toMatchObject({ code: "still-resolving" });
    expect(deadlineAtMs).toBe(601_000);
    expect(works[0]?.scope.cancelled).toBe(false);
  });

  it("says at the deadline how long the work has taken, and lets it go on", async () => {
    const { share, works, clock } = flights();

    const patient = share("a");
    clock.advance(3_400);
    const hurried = share("a", within(clock, 0));

    await expect(hurried).rejects.toMatchObject({
      name: "LoaderError",
      code: "still-resolving",
      message:
        "it is still being fetched (for 3 s so far): the request's deadline came first, the fetch goes on",
    });
    works[0]?.land("brought");
    expect(await patient).toBe("brought");
  });

  it("is joined by who comes after the first has left", async () => {
    const { share, works, clock } = flights();

    await expect(share("a", within(clock, 0))).rejects.toThrow("still being");
    const second = share("a");
    works[0]?.land("brought");

    expect(await second).toBe("brought");
    expect(works).toHaveLength(1);
  });

  it("lets one go away without the others", async () => {
    const { share, works } = flights();
    const leaving = createRequestScope({ deadlineAtMs: Infinity });

    const gone = share("a", leaving);
    const staying = share("a");
    leaving.cancel();

    await expect(gone).rejects.toMatchObject({
      name: "LoaderError",
      code: "resolve-cancelled",
      message: "the request was cancelled meanwhile",
    });
    expect(works[0]?.scope.cancelled).toBe(false);
    works[0]?.land("brought");
    expect(await staying).toBe("brought");
  });

  it("rejects for a caller who has gone already", async () => {
    const { share } = flights();
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    scope.cancel();

    await expect(share("a", scope)).rejects.toMatchObject({
      code: "resolve-cancelled",
    });
  });

  it("stops watching whoever has been served", async () => {
    const { share, works } = flights();
    vi.useFakeTimers();
    try {
      const waiting = share(
        "a",
        createRequestScope({ deadlineAtMs: 1_000_000 }),
      );
      expect(vi.getTimerCount()).toBe(1);
      works[0]?.land("brought");
      await waiting;
      await Promise.resolve();

      expect(vi.getTimerCount()).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it("tells a failure to whoever asks within its time", async () => {
    const { share, works, clock } = flights({ failureHoldsMs: 5_000 });

    const first = share("a");
    clock.advance(60_000);
    works[0]?.crash(failure);
    await expect(first).rejects.toBe(failure);
    // From when it failed, not from when it began.
    clock.advance(4_999);

    await expect(share("a")).rejects.toBe(failure);
    expect(works).toHaveLength(1);
  });

  it("forgets a failure when its time is over", async () => {
    const { share, works, clock } = flights({ failureHoldsMs: 5_000 });

    const first = share("a");
    works[0]?.crash(failure);
    await expect(first).rejects.toBe(failure);
    clock.advance(5_000);
    const second = share("a");
    works[1]?.land("brought");

    expect(await second).toBe("brought");
  });

  it("does not prolong a failure's time by telling it", async () => {
    const { share, works, clock } = flights({ failureHoldsMs: 5_000 });

    const first = share("a");
    works[0]?.crash(failure);
    await expect(first).rejects.toBe(failure);
    clock.advance(4_000);
    await expect(share("a")).rejects.toBe(failure);
    clock.advance(1_000);
    void share("a");

    expect(works).toHaveLength(2);
  });

  it("tells a failure to nobody who asks for other work", async () => {
    const { share, works } = flights({ failureHoldsMs: 5_000 });

    const first = share("a");
    works[0]?.crash(failure);
    await expect(first).rejects.toBe(failure);
    const other = share("b");
    works[1]?.land("brought");

    expect(await other).toBe("brought");
  });

  it("remembers a refusal by another folder, too", async () => {
    const refusal = new AdmissionError("pull-refused", "not permitted");
    const { share, works } = flights({ failureHoldsMs: 5_000 });

    const first = share("a");
    works[0]?.crash(refusal);
    await expect(first).rejects.toBe(refusal);

    await expect(share("a")).rejects.toBe(refusal);
    expect(works).toHaveLength(1);
  });

  it.each([
    { name: "a fault of ours", thrown: new TypeError("x"), holdsMs: 5_000 },
    { name: "anything, if that takes no time", thrown: failure, holdsMs: 0 },
  ])("does not remember $name", async ({ thrown, holdsMs }) => {
    const { share, works } = flights({ failureHoldsMs: holdsMs });

    const first = share("a");
    const joined = share("a");
    works[0]?.crash(thrown);
    await expect(first).rejects.toBe(thrown);
    await expect(joined).rejects.toBe(thrown);
    void share("a");

    expect(works).toHaveLength(2);
  });

  it("is no unhandled rejection when work fails that nobody waits for", async () => {
    const { share, works, clock } = flights();

    await expect(share("a", within(clock, 0))).rejects.toThrow("still being");
    works[0]?.crash(failure);

    // Vitest fails the run otherwise.
    await new Promise((resolve) => setImmediate(resolve));
    await expect(share("a")).rejects.toBe(failure);
  });

  it("remembers no more than 1000 failures, the last ones", async () => {
    const { share, works } = flights({ failureHoldsMs: 5_000 });
    const flying = share("under way");

    for (let at = 1; at <= 1_001; at++) {
      const failing = share(`${at}`);
      works[at]?.crash(failure);
      await expect(failing).rejects.toBe(failure);
    }

    await expect(share("1001")).rejects.toBe(failure);
    await expect(share("3")).rejects.toBe(failure);
    expect(works).toHaveLength(1_002);
    void share("1");
    expect(works).toHaveLength(1_003);
    // What is under way is not dropped, or it would be done twice.
    const joined = share("under way");
    expect(works).toHaveLength(1_003);
    works[0]?.land("brought");
    expect(await Promise.all([flying, joined])).toEqual(["brought", "brought"]);
  });
});

/** Work under way, and how to end it. */
interface Work {
  readonly scope: RequestScope;
  land(result: string): void;
  crash(thrown: unknown): void;
}

function flights({ budgetMs = 10_000, failureHoldsMs = 5_000 } = {}) {
  const clock = handClock();
  const works: Work[] = [];
  const all = createFlights<string>({ budgetMs, failureHoldsMs }, clock);
  return {
    clock,
    works,
    share: (
      key: string,
      scope: RequestScope = createRequestScope({ deadlineAtMs: Infinity }),
    ) =>
      all.share(
        key,
        (own) =>
          new Promise((resolve, reject) => {
            works.push({ scope: own, land: resolve, crash: reject });
          }),
        scope,
      ),
  };
}

function within(clock: ReturnType<typeof handClock>, ms: number): RequestScope {
  return createRequestScope({ deadlineAtMs: clock.monotonicMs() + ms });
}
