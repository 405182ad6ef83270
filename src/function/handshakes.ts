import type { Socket } from "node:net";

import type { Clock, Logger } from "../ports.js";
import { createLineBudget } from "./line-budget.js";
import { createMemory } from "./memory.js";

/** Decides which connections come to a TLS handshake, and when. */
export interface Handshakes {
  /**
   * Calls `handOver` once the connection may begin its handshake: at once, or when its peer has
   * ended others. Closes it if there are too many, or if the peer's last one has just failed.
   */
  admit(socket: Socket, handOver: () => void): void;
  /** The client may come in. A connection that closes without this has failed. */
  succeeded(socket: ConnectionEnds): void;
  /** Lets everybody come again at once, for what clients are judged by has changed. */
  forgive(): void;
}

/** What the connection and the one inside TLS have in common. */
export type ConnectionEnds = Pick<
  Socket,
  "localAddress" | "remoteAddress" | "remotePort"
>;

/**
 * OpenSSL checks every signature of the chain that a stranger shows, on our thread: one handshake
 * can take 0.3 s of it, and nothing can stop it in the middle. So strangers have one at a time.
 */
const maxUnderWay = 1;
const maxUnderWayAfterSuccess = 4;
/** Under way and waiting; more than the connections of a Crossplane that come back all at once. */
const maxPendingPerPeer = 128;
const maxPending = 1024;
/** To wait; the TLS servers have the same for handshakes. */
const longestWaitMs = 10_000;

const firstPauseMs = 1_000;
const longestPauseMs = 10_000;
const failureForgottenAfterMs = 600_000;
/** Connections are made anew when they reach their age, which is minutes by default. */
const successForgottenAfterMs = 3_600_000;
const toldAgainAfterMs = 600_000;
const maxRemembered = 1024;

interface Handshake {
  readonly socket: Socket;
  /** Of {@link idOf}: a socket that is closed cannot tell any more. */
  readonly id: string;
  readonly peer: Peer;
  readonly handOver: () => void;
  state: "ended" | "under-way" | "waiting";
  /** Closes one that had to wait. */
  timer: NodeJS.Timeout | null;
}

/** One address with handshakes that have not ended. */
interface Peer {
  readonly address: string;
  /** In the order they came. */
  readonly pending: Set<Handshake>;
  underWay: number;
}

/** After a handshake that failed. */
interface Pause {
  readonly lengthMs: number;
  /** Of the monotonic clock. */
  readonly untilMs: number;
}

/**
 * Bounds what those can take who have not proved who they are. Peers are told apart by their whole
 * address, in IPv6, too: all pods of a Kubernetes node have one /64.
 */
export function createHandshakes(clock: Clock, logger: Logger): Handshakes {
  const peers = new Map<string, Peer>();
  const underWay = new Map<string, Handshake>();
  const pauses = createMemory<Pause>(
    { max: maxRemembered, ttlMs: failureForgottenAfterMs },
    clock,
  );
  const proven = createMemory<true>(
    { max: maxRemembered, ttlMs: successForgottenAfterMs },
    clock,
  );
  const told = createMemory<true>(
    { max: maxRemembered, ttlMs: toldAgainAfterMs },
    clock,
  );
  const mayTell = createLineBudget(clock);
  let pendingCount = 0;

  function close(socket: Socket, peer: string, reason: string): void {
    socket.destroy();
    // Too many in all are those of many peers.
    const about = reason === reasons.tooMany ? reason : peer;
    if (told.has(about) || !mayTell()) return;
    told.set(about, true);
    logger.warn(
      { peer, reason },
      "connections of a peer are closed before TLS",
    );
  }

  function reasonAgainst(address: string): string | null {
    const { untilMs } = pauses.get(address) ?? { untilMs: 0 };
    if (clock.monotonicMs() < untilMs) return reasons.failed;
    const pending = peers.get(address)?.pending.size ?? 0;
    return pending < maxPendingPerPeer ? null : reasons.tooManyOfPeer;
  }

  function add(socket: Socket, address: string, handOver: () => void): void {
    const peer = peers.get(address) ?? {
      address,
      pending: new Set(),
      underWay: 0,
    };
    const handshake: Handshake = {
      socket,
      id: idOf(socket),
      peer,
      handOver,
      state: "waiting",
      timer: null,
    };
    peers.set(address, peer);
    peer.pending.add(handshake);
    pendingCount += 1;
    socket.once("close", () => {
      // Who has said nothing, such as a TCP probe, has cost nothing.
      if (handshake.state === "under-way" && socket.bytesRead > 0) pause(peer);
      end(handshake);
    });
    beginNext(peer);
    if (handshake.state === "under-way") return;
    handshake.timer = setTimeout(() => {
      close(socket, address, reasons.tooManyOfPeer);
    }, longestWaitMs);
  }

  function beginNext(peer: Peer): void {
    const max = proven.has(peer.address)
      ? maxUnderWayAfterSuccess
      : maxUnderWay;
    for (const next of peer.pending) {
      if (peer.underWay >= max) return;
      if (next.state === "under-way" || next.socket.destroyed) continue;
      next.state = "under-way";
      // From here on TLS has its own.
      clearTimeout(next.timer ?? undefined);
      peer.underWay += 1;
      underWay.set(next.id, next);
      next.handOver();
    }
  }

  function end(handshake: Handshake): void {
    const { id, peer, state, timer } = handshake;
    if (state === "ended") return;
    handshake.state = "ended";
    clearTimeout(timer ?? undefined);
    pendingCount -= 1;
    peer.pending.delete(handshake);
    if (peer.pending.size === 0) peers.delete(peer.address);
    if (state === "waiting") return;
    underWay.delete(id);
    peer.underWay -= 1;
    beginNext(peer);
  }

  /** One that began before the pause does not lengthen it. */
  function pause({ address, pending }: Peer): void {
    const nowMs = clock.monotonicMs();
    const last = pauses.get(address);
    if (last !== undefined && nowMs < last.untilMs) return;
    const lengthMs = Math.min(
      last === undefined ? firstPauseMs : last.lengthMs * 2,
      longestPauseMs,
    );
    pauses.set(address, { lengthMs, untilMs: nowMs + lengthMs });
    proven.delete(address);
    for (const handshake of pending) {
      if (handshake.state === "under-way") continue;
      end(handshake);
      close(handshake.socket, address, reasons.failed);
    }
  }

  /** Closes the newest of the peer that has most, so that others are not hurt. */
  function makeRoom(): void {
    if (pendingCount < maxPending) return;
    const [first, ...others] = peers.values();
    if (first === undefined) return;
    const crowd = others.reduce(
      (most, peer) => (peer.pending.size > most.pending.size ? peer : most),
      first,
    );
    const newest = [...crowd.pending].at(-1);
    if (newest === undefined) return;
    end(newest);
    close(newest.socket, crowd.address, reasons.tooMany);
  }

  return {
    admit(socket, handOver) {
      // While it waits, nobody else listens.
      socket.on("error", () => undefined);
      const address = socket.remoteAddress;
      if (address === undefined) {
        // It is gone already.
        socket.destroy();
        return;
      }
      const reason = reasonAgainst(address);
      if (reason !== null) {
        close(socket, address, reason);
        return;
      }
      makeRoom();
      add(socket, address, handOver);
    },
    succeeded(socket) {
      const handshake = underWay.get(idOf(socket));
      if (handshake === undefined) return;
      const { address } = handshake.peer;
      pauses.delete(address);
      proven.set(address, true);
      end(handshake);
    },
    forgive() {
      pauses.clear();
    },
  };
}

const reasons = {
  failed: "a TLS handshake of this address has just failed",
  tooManyOfPeer: "too many TLS handshakes of this address have not ended",
  tooMany: "too many TLS handshakes have not ended",
} as const;

function idOf({
  localAddress,
  remoteAddress,
  remotePort,
}: ConnectionEnds): string {
  return [remoteAddress, remotePort, localAddress].join(" ");
}
