import type { Clock, Digest, Metrics, RequestScope } from "../ports.js";
import { EngineError } from "./error.js";
import { whenOver } from "../request-scope.js";

/** What a run needs before it may start. */
export interface SlotRequest {
  /** Fairness is by module: each module in turn. */
  readonly module: Digest;
  /** Runs with equal keys share `stepConcurrency`. */
  readonly stepKey: string;
  /** `null` = no bound of its own. */
  readonly stepConcurrency: number | null;
  /** Reserved as a whole before the run; never waited for inside it. */
  readonly memoryBytes: number;
}

/** Options of {@link createSlots}; 0 = unbounded. */
export interface SlotOptions {
  readonly maxConcurrentRuns: number;
  readonly maxTotalRunMemoryBytes: number;
}

/** Decides which waiting run goes next. */
export interface Slots {
  /**
   * Resolves to a function that gives the slot back (idempotent).
   * @throws EngineError slot-wait, run-cancelled
   */
  acquire(request: SlotRequest, scope: RequestScope): Promise<() => void>;
  /** Runs that hold a slot. */
  readonly running: number;
  /** Ends every wait, and every later one, with run-cancelled. */
  close(): void;
}

/** What {@link createSlots} counts. */
type SlotMetrics = Pick<Metrics, "memoryDenied" | "runQueued" | "runsInFlight">;

/**
 * Makes the run slots: round-robin over modules, first come first served within one. A run that
 * waits for its own step's concurrency lets others pass; one that waits for memory does not, or a
 * large run would starve behind small ones.
 */
export function createSlots(
  options: SlotOptions,
  clock: Clock,
  metrics: SlotMetrics,
): Slots {
  const maxRuns = options.maxConcurrentRuns || Infinity;
  const maxMemoryBytes = options.maxTotalRunMemoryBytes || Infinity;
  /** Insertion order is the order of turns. */
  const queues = new Map<Digest, Waiter[]>();
  const waiters = new Set<(error: EngineError) => void>();
  const stepRuns = new Map<string, number>();
  let running = 0;
  let memoryBytes = 0;
  let closed = false;

  return {
    get running() {
      return running;
    },
    async acquire(request, scope) {
      if (closed) throw shuttingDown();
      // More than there is would never fit: alone, such a run gets all there is.
      const waiter: Waiter = {
        request: {
          ...request,
          memoryBytes: Math.min(request.memoryBytes, maxMemoryBytes),
        },
        start: () => undefined,
      };
      if (queues.size === 0 && blockedBy(waiter) === null) {
        metrics.runQueued(0);
        return take(waiter);
      }
      return await waitFor(waiter, scope);
    },
    close() {
      closed = true;
      for (const giveUp of [...waiters]) giveUp(shuttingDown());
    },
  };

  function blockedBy({ request }: Waiter): Blocker | null {
    if (running >= maxRuns) return "a run slot";
    if (stepIsFull(request)) return "the step's own runs (limits.concurrency)";
    if (memoryBytes + request.memoryBytes > maxMemoryBytes) return "run memory";
    return null;
  }

  function stepIsFull({ stepKey, stepConcurrency }: SlotRequest): boolean {
    return (
      stepConcurrency !== null &&
      (stepRuns.get(stepKey) ?? 0) >= stepConcurrency
    );
  }

  function take({ request }: Waiter): () => void {
    running += 1;
    metrics.runsInFlight(running);
    memoryBytes += request.memoryBytes;
    stepRuns.set(request.stepKey, (stepRuns.get(request.stepKey) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      running -= 1;
      metrics.runsInFlight(running);
      memoryBytes -= request.memoryBytes;
      const left = (stepRuns.get(request.stepKey) ?? 1) - 1;
      if (left === 0) stepRuns.delete(request.stepKey);
      else stepRuns.set(request.stepKey, left);
      startWaiters();
    };
  }

  function startWaiters(): void {
    for (let next = nextWaiter(); next !== null; next = nextWaiter()) {
      remove(next);
      // The module's next turn comes after all others'.
      const rest = queues.get(next.request.module);
      if (rest !== undefined) {
        queues.delete(next.request.module);
        queues.set(next.request.module, rest);
      }
      next.start(take(next));
    }
  }

  function nextWaiter(): Waiter | null {
    if (closed || running >= maxRuns) return null;
    for (const queue of queues.values()) {
      const waiter = queue.find(({ request }) => !stepIsFull(request));
      if (waiter !== undefined)
        return blockedBy(waiter) === null ? waiter : null;
    }
    return null;
  }

  function remove(waiter: Waiter): void {
    const queue = queues.get(waiter.request.module);
    const at = queue?.indexOf(waiter) ?? -1;
    if (queue === undefined || at < 0) return;
    queue.splice(at, 1);
    if (queue.length === 0) queues.delete(waiter.request.module);
  }

  function waitFor(waiter: Waiter, scope: RequestScope): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const queuedAtMs = clock.monotonicMs();
      const stopWaiting = () => {
        stopWatching();
        waiters.delete(giveUp);
        metrics.runQueued((clock.monotonicMs() - queuedAtMs) / 1000);
      };
      const giveUp = (error: EngineError) => {
        stopWaiting();
        remove(waiter);
        reject(error);
        // It may have been the one that kept others from their memory.
        startWaiters();
      };
      const stopWatching = whenOver(scope, clock, (why) => {
        if (why === "cancelled") {
          giveUp(
            new EngineError(
              "run-cancelled",
              "waiting for a run slot: cancelled",
            ),
          );
          return;
        }
        const blocker = blockedBy(waiter) ?? "a run slot";
        if (blocker === "run memory") metrics.memoryDenied("pool", 1);
        giveUp(
          new EngineError(
            "slot-wait",
            `waiting for ${blocker}: deadline exceeded`,
          ),
        );
      });
      waiter.start = (release) => {
        stopWaiting();
        resolve(release);
      };
      waiters.add(giveUp);
      const queue = queues.get(waiter.request.module);
      if (queue === undefined) queues.set(waiter.request.module, [waiter]);
      else queue.push(waiter);
      startWaiters();
    });
  }
}

function shuttingDown(): EngineError {
  return new EngineError(
    "run-cancelled",
    "waiting for a run slot: shutting down",
  );
}

type Blocker =
  "a run slot" | "the step's own runs (limits.concurrency)" | "run memory";

interface Waiter {
  readonly request: SlotRequest;
  start: (release: () => void) => void;
}
