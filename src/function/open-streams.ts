import type { Duplex } from "node:stream";

/** Connections, or calls, that have not closed yet. */
export interface OpenStreams {
  /** Counts one until it closes. */
  add(stream: Duplex): void;
  /** Resolves once there is none. */
  none(): Promise<void>;
  destroyAll(): void;
}

/**
 * Counts them ourselves: grpc-js says that it has shut down as soon as Node calls its sessions
 * closed, which Node 24 does while calls on them are still being answered, and it closes none of
 * the connections that it was handed.
 */
export function createOpenStreams(): OpenStreams {
  const open = new Set<Duplex>();
  let whenNone: (() => void)[] = [];

  return {
    add(stream) {
      open.add(stream);
      stream.once("close", () => {
        open.delete(stream);
        if (open.size > 0) return;
        for (const resolve of whenNone) resolve();
        whenNone = [];
      });
    },
    none: () =>
      open.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => whenNone.push(resolve)),
    destroyAll() {
      for (const stream of open) stream.destroy();
    },
  };
}
