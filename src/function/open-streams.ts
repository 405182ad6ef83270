import type { Socket } from "node:net";

/** Connections that are open. */
export interface Connections {
  /** Counts one until it closes. */
  add(socket: Socket): void;
  /** Resolves once there is none. */
  none(): Promise<void>;
}

/**
 * Counts connections ourselves: grpc-js says that it has shut down as soon as Node calls its
 * sessions closed, which Node 24 does while calls on them are still being answered.
 */
export function createConnections(): Connections {
  const open = new Set<Socket>();
  let whenNone: (() => void)[] = [];

  return {
    add(socket) {
      open.add(socket);
      socket.once("close", () => {
        open.delete(socket);
        if (open.size > 0) return;
        for (const resolve of whenNone) resolve();
        whenNone = [];
      });
    },
    none: () =>
      open.size === 0
        ? Promise.resolve()
        : new Promise((resolve) => whenNone.push(resolve)),
  };
}
