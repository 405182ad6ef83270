import { afterEach, describe, expect, it, vi } from "vitest";

import type { RequestScope } from "../../src/ports.js";
import {
  createRequestScope,
  scopeFromSignal,
} from "../../src/request-scope.js";

interface Made {
  readonly scope: RequestScope;
  readonly cancel: () => void;
}

const makers: { name: string; make: () => Made }[] = [
  {
    name: "createRequestScope",
    make: () => {
      const scope = createRequestScope({ deadlineAtMs: 7 });
      return { scope, cancel: () => scope.cancel() };
    },
  },
  {
    name: "scopeFromSignal",
    make: () => {
      const controller = new AbortController();
      const scope = scopeFromSignal(7, controller.signal);
      return { scope, cancel: () => controller.abort() };
    },
  },
];

describe("request-scope", () => {
  afterEach(() => {
    vi.unstubAllGlobals();
  });

  describe.each(makers)("$name", ({ make }) => {
    it("has the deadline it was given, and a caller that is there", () => {
      const { scope } = make();

      expect(scope.deadlineAtMs).toBe(7);
      expect(scope.cancelled).toBe(false);
      expect(scope.signal.aborted).toBe(false);
    });

    it("tells every subscription once, in order, when the caller goes", () => {
      const { scope, cancel } = make();
      const told: string[] = [];
      const twice = () => told.push(`twice ${scope.cancelled}`);
      scope.onCancel(() => told.push(`first ${scope.cancelled}`));
      scope.onCancel(twice);
      scope.onCancel(twice);

      cancel();
      cancel();

      expect(told).toEqual(["first true", "twice true", "twice true"]);
    });

    it("does not tell one who unsubscribed, and goes on telling the others", () => {
      const { scope, cancel } = make();
      const told: string[] = [];
      const listener = () => told.push("same");
      const leave = scope.onCancel(listener);
      scope.onCancel(listener);
      const leaveLast = scope.onCancel(() => told.push("last"));
      scope.onCancel(() => leaveLast());

      leave();
      leave();
      cancel();

      expect(told).toEqual(["same", "last"]);
    });

    it("does not tell one whom another unsubscribed meanwhile", () => {
      const { scope, cancel } = make();
      const told = vi.fn();
      let leave: () => void = () => undefined;
      scope.onCancel(() => leave());
      leave = scope.onCancel(told);

      cancel();

      expect(told).not.toHaveBeenCalled();
    });

    it("does not tell one who comes too late", () => {
      const { scope, cancel } = make();
      const told = vi.fn();

      cancel();
      const leave = scope.onCancel(told);
      leave();

      expect(scope.cancelled).toBe(true);
      expect(told).not.toHaveBeenCalled();
    });

    it("has one signal, aborted when the caller goes", () => {
      const { scope, cancel } = make();
      const aborted = vi.fn();
      scope.signal.addEventListener("abort", aborted);

      cancel();

      expect(aborted).toHaveBeenCalledTimes(1);
      expect(scope.signal.aborted).toBe(true);
    });

    it("has an aborted signal when it is first asked for afterwards", () => {
      const { scope, cancel } = make();

      cancel();

      expect(scope.signal.aborted).toBe(true);
    });
  });

  it("makes no signal before one is asked for", () => {
    const made = vi.fn();
    vi.stubGlobal(
      "AbortController",
      class extends AbortController {
        constructor() {
          super();
          made();
        }
      },
    );
    const scope = createRequestScope({ deadlineAtMs: 0 });
    scope.onCancel(() => undefined);
    scope.cancel();
    expect(made).not.toHaveBeenCalled();

    expect(scope.signal).toBe(scope.signal);

    expect(made).toHaveBeenCalledTimes(1);
  });

  it("tells the others, and aborts the signal, when a listener throws", () => {
    const later: (() => void)[] = [];
    vi.stubGlobal("queueMicrotask", (task: () => void) => later.push(task));
    const scope = createRequestScope({ deadlineAtMs: 0 });
    const { signal } = scope;
    const told = vi.fn();
    scope.onCancel(() => {
      throw new Error("faulty");
    });
    scope.onCancel(told);

    scope.cancel();

    expect(told).toHaveBeenCalledTimes(1);
    expect(signal.aborted).toBe(true);
    expect(later).toHaveLength(1);
    expect(later[0]).toThrow("faulty");
  });
});
