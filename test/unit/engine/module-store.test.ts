import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createModuleStore,
  type ModuleStore,
} from "../../../src/engine/module-store.js";
import { clock } from "../../support/engine.js";
import { digestOf, fakeModule, useFakeTime } from "./fixtures.js";

const MINUTE_MS = 60_000;
const a = digestOf(1);
const b = digestOf(2);
const c = digestOf(3);

let store: ModuleStore;
beforeEach(useFakeTime);
afterEach(() => {
  store.close();
  vi.useRealTimers();
});

function open(maxModules = 0, keepsIdle = true): void {
  store = createModuleStore({ keepsIdle, maxModules }, clock);
}

/** Adds a module that nobody leases. */
function addIdle(digest: typeof a) {
  const module = fakeModule();
  store.add(digest, module).release();
  return module;
}

describe("engine/module-store leases", () => {
  it("leases what was added, and nothing else", () => {
    open();
    const module = fakeModule();

    const added = store.add(a, module);

    expect(added.module).toBe(module);
    expect(store.lease(a)?.module).toBe(module);
    expect(store.lease(b)).toBeNull();
    expect(store.size).toBe(1);
  });

  it("counts a lease that is released twice once", () => {
    open(1);
    const module = fakeModule();
    const first = store.add(a, module);
    const second = store.lease(a);

    first.release();
    first.release();
    addIdle(b);

    // The second lease is still held, so the other one had to go.
    expect(module.dispose).not.toHaveBeenCalled();
    expect(store.lease(a)?.module).toBe(module);
    second?.release();
  });

  it("keeps the first of two modules with one digest, which may be leased", () => {
    open();
    const first = fakeModule();
    const second = fakeModule();
    const held = store.add(a, first);

    const added = store.add(a, second);

    expect(added.module).toBe(first);
    expect(first.dispose).not.toHaveBeenCalled();
    expect(second.dispose).toHaveBeenCalledTimes(1);
    expect(store.size).toBe(1);
    held.release();
    vi.advanceTimersByTime(30 * MINUTE_MS);
    expect(first.dispose).not.toHaveBeenCalled();
    added.release();
    vi.advanceTimersByTime(30 * MINUTE_MS);
    expect(first.dispose).toHaveBeenCalledTimes(1);
  });
});

describe("engine/module-store idle modules", () => {
  it("drops one that nobody leased for ten minutes, at the next sweep", () => {
    open();
    const module = addIdle(a);

    vi.advanceTimersByTime(9 * MINUTE_MS);
    expect(store.size).toBe(1);
    vi.advanceTimersByTime(2 * MINUTE_MS);

    expect(store.size).toBe(0);
    expect(module.dispose).toHaveBeenCalledTimes(1);
    expect(store.lease(a)).toBeNull();
  });

  it("counts from the last release", () => {
    open();
    const module = fakeModule();
    const lease = store.add(a, module);
    vi.advanceTimersByTime(60 * MINUTE_MS);
    lease.release();

    vi.advanceTimersByTime(9 * MINUTE_MS);
    expect(module.dispose).not.toHaveBeenCalled();
    vi.advanceTimersByTime(2 * MINUTE_MS);

    expect(module.dispose).toHaveBeenCalledTimes(1);
  });

  it("counts anew with each use", () => {
    open();
    const module = addIdle(a);
    for (let use = 0; use < 10; use++) {
      vi.advanceTimersByTime(8 * MINUTE_MS);
      store.lease(a)?.release();
    }

    expect(module.dispose).not.toHaveBeenCalled();
    vi.advanceTimersByTime(11 * MINUTE_MS);

    expect(module.dispose).toHaveBeenCalledTimes(1);
  });

  it("never drops one that is leased", () => {
    open();
    const module = fakeModule();
    const lease = store.add(a, module);

    vi.advanceTimersByTime(24 * 60 * MINUTE_MS);

    expect(module.dispose).not.toHaveBeenCalled();
    lease.release();
  });

  it("drops only those that are due", () => {
    open();
    const old = addIdle(a);
    vi.advanceTimersByTime(5 * MINUTE_MS);
    const young = addIdle(b);

    vi.advanceTimersByTime(6 * MINUTE_MS);

    expect(old.dispose).toHaveBeenCalledTimes(1);
    expect(young.dispose).not.toHaveBeenCalled();
  });
});

describe("engine/module-store that keeps nothing idle", () => {
  it("drops a module with its last lease", () => {
    open(0, false);
    const module = fakeModule();
    const first = store.add(a, module);
    const second = store.lease(a);

    first.release();
    expect(module.dispose).not.toHaveBeenCalled();
    second?.release();

    expect(module.dispose).toHaveBeenCalledTimes(1);
    expect(store.lease(a)).toBeNull();
    expect(store.size).toBe(0);
  });

  it("keeps one that is leased, however long", () => {
    open(0, false);
    const module = fakeModule();
    const lease = store.add(a, module);

    vi.advanceTimersByTime(60 * MINUTE_MS);

    expect(store.lease(a)?.module).toBe(module);
    expect(module.dispose).not.toHaveBeenCalled();
    lease.release();
  });

  it("does not mind a lease that ends after it was closed", () => {
    open(0, false);
    const module = fakeModule();
    const lease = store.add(a, module);

    store.close();
    lease.release();

    expect(module.dispose).toHaveBeenCalledTimes(1);
  });
});

describe("engine/module-store surplus", () => {
  it("drops the least recently used", () => {
    open(2);
    const modules = [addIdle(a), addIdle(b)];
    store.lease(a)?.release();

    modules.push(addIdle(c));

    expect(modules.map(({ dispose }) => dispose.mock.calls.length)).toEqual([
      0, 1, 0,
    ]);
    expect(store.size).toBe(2);
  });

  it("counts the end of a lease as a use", () => {
    open(2);
    const long = fakeModule();
    const held = store.add(a, long);
    const short = addIdle(b);
    held.release();

    addIdle(c);

    expect(long.dispose).not.toHaveBeenCalled();
    expect(short.dispose).toHaveBeenCalledTimes(1);
  });

  it("exceeds its bound rather than drop what is leased, until that is released", () => {
    open(1);
    const modules = [fakeModule(), fakeModule(), fakeModule()];
    const leases = [a, b, c].map((digest, index) =>
      store.add(digest, modules[index] ?? fakeModule()),
    );
    expect(store.size).toBe(3);

    leases[0]?.release();
    expect(store.size).toBe(2);
    leases[1]?.release();
    expect(store.size).toBe(1);
    leases[2]?.release();

    expect(modules.map(({ dispose }) => dispose.mock.calls.length)).toEqual([
      1, 1, 0,
    ]);
    expect(store.lease(c)?.module).toBe(modules[2]);
  });

  it("keeps any number when it has no bound", () => {
    open(0);

    const modules = Array.from({ length: 100 }, (_, n) => addIdle(digestOf(n)));

    expect(store.size).toBe(100);
    for (const { dispose } of modules) expect(dispose).not.toHaveBeenCalled();
  });
});

describe("engine/module-store close", () => {
  it("disposes of every module once, leased or not, and sweeps no more", () => {
    open();
    const idle = addIdle(a);
    const leased = fakeModule();
    const lease = store.add(b, leased);

    store.close();
    lease.release();
    store.close();

    expect(store.size).toBe(0);
    expect(idle.dispose).toHaveBeenCalledTimes(1);
    expect(leased.dispose).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
