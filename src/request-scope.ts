import type { Clock, RequestScope } from "./ports.js";

/** A scope, and how to say that its caller has gone. */
export interface CancellableScope extends RequestScope {
  /** A second call does nothing. */
  cancel(): void;
}

/** The scope of a request whose caller is there. Cheap: every request has one. */
export function createRequestScope(options: {
  readonly deadlineAtMs: number;
}): CancellableScope {
  return new Scope(options.deadlineAtMs);
}

/** The scope of work whose caller goes away when `signal` is aborted. */
export function scopeFromSignal(
  deadlineAtMs: number,
  signal: AbortSignal,
): RequestScope {
  return {
    deadlineAtMs,
    signal,
    get cancelled() {
      return signal.aborted;
    },
    onCancel(listener) {
      const onAbort = (): void => listener();
      signal.addEventListener("abort", onAbort, { once: true });
      return () => signal.removeEventListener("abort", onAbort);
    },
  };
}

/** Node's longest timer; what would fire later is as good as never. */
const MAX_TIMER_MS = 2_147_483_647;

/** Calls `fire` after `delayMs`, unless the function it returns is called before. */
export function startTimer(delayMs: number, fire: () => void): () => void {
  if (delayMs > MAX_TIMER_MS) return () => undefined;
  const timer = setTimeout(fire, Math.max(0, delayMs));
  return () => {
    clearTimeout(timer);
  };
}

/**
 * Calls `over` once, when the request's deadline passes or its caller goes away, unless the
 * function it returns is called before. When that has happened already it calls later, too, never
 * from inside.
 */
export function whenOver(
  scope: RequestScope,
  clock: Clock,
  over: (why: "deadline" | "cancelled") => void,
): () => void {
  const stopTimer = startTimer(
    scope.cancelled ? 0 : scope.deadlineAtMs - clock.monotonicMs(),
    () => {
      end(scope.cancelled ? "cancelled" : "deadline");
    },
  );
  const stopListening = scope.onCancel(() => {
    end("cancelled");
  });
  return stop;

  function stop(): void {
    stopTimer();
    stopListening();
  }

  function end(why: "deadline" | "cancelled"): void {
    stop();
    over(why);
  }
}

class Scope implements CancellableScope {
  readonly deadlineAtMs: number;
  cancelled = false;
  /** One entry per subscription, so that a function subscribed twice is two. */
  #subscriptions: Set<{ readonly listener: () => void }> | undefined;
  #controller: AbortController | undefined;

  constructor(deadlineAtMs: number) {
    this.deadlineAtMs = deadlineAtMs;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.cancelled) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  onCancel(listener: () => void): () => void {
    if (this.cancelled) return () => undefined;
    const subscription = { listener };
    const subscriptions = (this.#subscriptions ??= new Set());
    subscriptions.add(subscription);
    return () => subscriptions.delete(subscription);
  }

  cancel(): void {
    if (this.cancelled) return;
    this.cancelled = true;
    for (const { listener } of this.#subscriptions ?? []) {
      try {
        listener();
      } catch (thrown) {
        // As an AbortSignal does: a fault shows, and keeps nobody else from being told.
        queueMicrotask(() => {
          throw thrown;
        });
      }
    }
    this.#subscriptions = undefined;
    this.#controller?.abort();
  }
}
