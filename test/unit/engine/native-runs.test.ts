import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createNativeRuns,
  type RunBounds,
  type RunEnded,
} from "../../../src/engine/native-runs.js";
import {
  failed,
  fakeModule,
  fakeNative,
  reportOf,
  settle,
  useFakeTime,
} from "./fixtures.js";

const WAIT_MS = 2_000;
const MAX_U32 = 4_294_967_295;

beforeEach(useFakeTime);
afterEach(() => {
  vi.useRealTimers();
});

/** An empty set of runs over a sandbox that does nothing. */
function setUp(numbers?: { lastId?: number; maxId?: number }) {
  const native = fakeNative();
  const onError = vi.fn<(thrown: unknown) => void>();
  const runs = createNativeRuns(onError, numbers);
  const start = (ended = vi.fn<RunEnded>()) => ({
    ended,
    id: runs.start(native, fakeModule(), new Uint8Array(), bounds, ended),
  });
  return { native, onError, runs, start };
}

const bounds: RunBounds = {
  timeoutMs: 1_000,
  deadlineInMs: Infinity,
  memoryLimitBytes: 65_536,
  env: [{ name: "A", value: "1" }],
};

/** Whether a promise is resolved, once everything has happened that needs no time. */
async function isResolved(promise: Promise<void>): Promise<boolean> {
  let resolved = false;
  void promise.then(() => {
    resolved = true;
  });
  await settle();
  return resolved;
}

describe("engine/native-runs start", () => {
  it("hands the addon the call under the number it returns", () => {
    const { native, runs } = setUp();
    const [module, request] = [fakeModule(), new Uint8Array([1, 2])];

    const id = runs.start(native, module, request, bounds, vi.fn());

    expect(native.run.mock.calls).toEqual([
      [id, module, request, 1_000, Infinity, 65_536, bounds.env],
    ]);
    expect(native.run.mock.lastCall?.[1]).toBe(module);
    expect(native.run.mock.lastCall?.[2]).toBe(request);
  });

  it("throws what the addon throws, and keeps nothing of that run", async () => {
    const { native, onError, runs, start } = setUp();
    const thrown = new Error("the module was disposed of");
    native.run.mockImplementationOnce(() => {
      throw thrown;
    });
    const ended = vi.fn<RunEnded>();

    expect(() => start(ended)).toThrow(thrown);

    const [id] = native.run.mock.lastCall ?? [];
    runs.done(id ?? NaN, null, null);
    await runs.cancelAll(native, WAIT_MS);
    expect(ended).not.toHaveBeenCalled();
    expect(native.cancel).not.toHaveBeenCalled();
    expect(onError).not.toHaveBeenCalled();
  });
});

describe("engine/native-runs numbers", () => {
  it("fit 32 bits, and start again after the last", () => {
    const { start } = setUp({ lastId: MAX_U32 - 2 });

    const ids = [start(), start(), start(), start()].map(({ id }) => id);

    expect(ids).toEqual([MAX_U32 - 1, MAX_U32, 0, 1]);
  });

  it("are never those of a run under way", () => {
    const { runs, start } = setUp({ maxId: 4 });
    const busy = [start(), start()];
    const short = [start(), start()];
    expect([...busy, ...short].map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    for (const { id } of short) runs.done(id, null, null);

    const later = [start(), start()];

    expect(later.map(({ id }) => id)).toEqual([0, 3]);
    for (const { id } of busy) runs.done(id, null, null);
    for (const { ended } of [...busy, ...short])
      expect(ended).toHaveBeenCalledTimes(1);
    for (const { ended } of later) expect(ended).not.toHaveBeenCalled();
  });

  it("of a run that starts while another ends is its own, too", () => {
    const { runs, start } = setUp({ maxId: 1 });
    const next = vi.fn<RunEnded>();
    const first = start(
      vi.fn<RunEnded>(() => {
        expect(start(next).id).toBe(0);
      }),
    );

    runs.done(first.id, null, null);

    expect(next).not.toHaveBeenCalled();
    runs.done(0, null, null);
    expect(next).toHaveBeenCalledTimes(1);
  });
});

describe("engine/native-runs done", () => {
  it("settles each run by its number, in whatever order", () => {
    const { runs, start } = setUp();
    const [a, b, c] = [start(), start(), start()];
    const [response, report] = [Buffer.from("b"), reportOf()];
    const failure = failed("trap");

    runs.done(c.id, null, failure);
    runs.done(b.id, response, report);

    expect(a.ended).not.toHaveBeenCalled();
    expect(b.ended.mock.calls).toEqual([[response, report]]);
    expect(b.ended.mock.lastCall?.[0]).toBe(response);
    expect(c.ended.mock.calls).toEqual([[null, failure]]);
    runs.done(a.id, Buffer.from("a"), null);
    expect(a.ended.mock.calls).toEqual([[Buffer.from("a"), null]]);
  });

  it.each([
    { name: "that no run has had", idOf: () => 4_711 },
    { name: "of a run that has ended", idOf: (endedId: number) => endedId },
  ])("ignores a number $name", ({ idOf }) => {
    const { onError, runs, start } = setUp();
    const [over, busy] = [start(), start()];
    runs.done(over.id, null, null);

    runs.done(idOf(over.id), Buffer.from("stray"), null);

    expect(over.ended).toHaveBeenCalledTimes(1);
    expect(busy.ended).not.toHaveBeenCalled();
    expect(onError).not.toHaveBeenCalled();
  });

  it.each([
    { name: "", hear: () => undefined },
    {
      name: ", though nobody can be told",
      hear: () => {
        throw new Error("the log is broken");
      },
    },
  ])(
    "lets nothing escape that goes wrong in settling$name",
    async ({ hear }) => {
      const { native, onError, runs, start } = setUp();
      onError.mockImplementation(hear);
      const thrown = new Error("the log is full");
      const bad = start(
        vi.fn<RunEnded>(() => {
          throw thrown;
        }),
      );
      const good = start();
      const closing = runs.cancelAll(native, WAIT_MS);

      runs.done(good.id, null, null);
      runs.done(bad.id, null, null);

      expect(onError.mock.calls).toEqual([[thrown]]);
      expect(good.ended).toHaveBeenCalledTimes(1);
      expect(await isResolved(closing)).toBe(true);
    },
  );
});

describe("engine/native-runs cancelAll", () => {
  it("is done at once when nothing runs", async () => {
    const { native, runs, start } = setUp();
    runs.done(start().id, null, null);

    const closing = runs.cancelAll(native, WAIT_MS);

    expect(await isResolved(closing)).toBe(true);
    expect(native.cancel).not.toHaveBeenCalled();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("cancels every run and waits for the last", async () => {
    const { native, runs, start } = setUp();
    const [over, a, b] = [start(), start(), start()];
    runs.done(over.id, null, null);

    const closing = runs.cancelAll(native, WAIT_MS);

    expect(native.cancel.mock.calls).toEqual([[a.id], [b.id]]);
    runs.done(b.id, null, failed("cancelled"));
    expect(await isResolved(closing)).toBe(false);
    runs.done(a.id, Buffer.from("in time"), null);
    expect(await isResolved(closing)).toBe(true);
    expect(a.ended.mock.calls).toEqual([[Buffer.from("in time"), null]]);
    expect(b.ended).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("waits as long as it was told, then ends what is left as cancelled", async () => {
    const { native, onError, runs, start } = setUp();
    const left = [start(), start()];
    const closing = runs.cancelAll(native, WAIT_MS);

    await vi.advanceTimersByTimeAsync(WAIT_MS - 1);
    expect(await isResolved(closing)).toBe(false);
    for (const { ended } of left) expect(ended).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);

    expect(await isResolved(closing)).toBe(true);
    for (const { id, ended } of left) {
      runs.done(id, Buffer.from("too late"), null);
      expect(ended).toHaveBeenCalledTimes(1);
      const [response, report] = ended.mock.lastCall ?? [];
      expect(response).toBeNull();
      expect(report?.failure?.kind).toBe("cancelled");
    }
    expect(onError).not.toHaveBeenCalled();
  });
});
