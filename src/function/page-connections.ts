import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/**
 * Keeps at most `max` connections of `server` open, by closing an older one for each that is too
 * many: whoever holds idle ones must not keep the kubelet out.
 */
export function boundConnections(server: Server, max: number): void {
  /** The oldest first, with how many requests have no whole answer yet. */
  const open = new Map<Socket, number>();
  server.on("connection", (socket: Socket) => {
    if (open.size >= max) {
      const victim = chooseVictim(open);
      // Now, for it is closed later.
      if (victim !== undefined) open.delete(victim);
      victim?.destroy();
    }
    open.set(socket, 0);
    socket.once("close", () => open.delete(socket));
  });
  server.on(
    "request",
    ({ socket }: IncomingMessage, response: ServerResponse) => {
      add(socket, 1);
      response.once("close", () => {
        add(socket, -1);
      });
    },
  );

  function add(socket: Socket, change: number): void {
    const requests = open.get(socket);
    if (requests !== undefined) open.set(socket, requests + change);
  }
}

/**
 * One of the address that has most of them, so that nobody is hurt by the crowd of another; there
 * the oldest that waits for no answer, or else the oldest.
 */
function chooseVictim(open: ReadonlyMap<Socket, number>): Socket | undefined {
  const perAddress = new Map<string | undefined, number>();
  for (const { remoteAddress } of open.keys()) {
    perAddress.set(remoteAddress, (perAddress.get(remoteAddress) ?? 0) + 1);
  }
  const most = Math.max(...perAddress.values());
  const crowd = [...open].filter(
    ([{ remoteAddress }]) => perAddress.get(remoteAddress) === most,
  );
  const [victim] =
    crowd.find(([, requests]) => requests === 0) ?? crowd[0] ?? [];
  return victim;
}
