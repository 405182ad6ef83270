import { EventEmitter } from "node:events";
import type { Socket } from "node:net";

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";

import {
  createHandshakes,
  type Handshakes,
} from "../../../src/function/handshakes.js";
import { recordingLogger, type LogLine } from "./fixtures.js";

const crossplane = "10.0.0.1";
const stranger = "10.0.0.66";
const failed = "a TLS handshake of this address has just failed";

let nowMs: number;
let handshakes: Handshakes;
let lines: LogLine[];

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  nowMs = 0;
  const recording = recordingLogger();
  lines = recording.lines;
  handshakes = createHandshakes(
    { nowMs: () => 0, monotonicMs: () => nowMs },
    recording.logger,
  );
});

afterEach(() => vi.useRealTimers());

let nextPort = 1024;

/** A connection from an address, and what became of it. */
class Connection extends EventEmitter {
  readonly remotePort = nextPort++;
  readonly localAddress = "10.0.0.2";
  bytesRead = 0;
  destroyed = false;
  begun = false;
  readonly remoteAddress: string | undefined;

  constructor(remoteAddress: string | undefined) {
    super();
    this.remoteAddress = remoteAddress;
    handshakes.admit(this as unknown as Socket, () => {
      this.begun = true;
      this.bytesRead = 300;
    });
  }

  get state(): "begun" | "closed" | "waiting" {
    if (this.destroyed) return "closed";
    return this.begun ? "begun" : "waiting";
  }

  /** As a socket does, it tells of it later. */
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    process.nextTick(() => this.emit("close"));
  }

  /** Waits until it is closed. */
  async fail(): Promise<void> {
    this.destroy();
    await new Promise((resolve) => process.nextTick(resolve));
  }

  succeed(): void {
    handshakes.succeeded(this);
  }
}

const connect = (address = crossplane) => new Connection(address);

const connectMany = (count: number, address: string) =>
  Array.from({ length: count }, () => connect(address));

const statesOf = (connections: readonly Connection[]) =>
  connections.map(({ state }) => state);

/** As many as are in that state. */
const count = (
  connections: readonly Connection[],
  state: Connection["state"],
) => connections.filter((connection) => connection.state === state).length;

async function failNow(address: string): Promise<void> {
  const connection = connect(address);
  expect(connection.state).toBe("begun");
  await connection.fail();
}

describe("function/handshakes", () => {
  describe("at once", () => {
    it("has one of a stranger, and four once one has succeeded", () => {
      const connections = connectMany(6, crossplane);
      expect(statesOf(connections)).toEqual([
        "begun",
        ...Array.from({ length: 5 }, () => "waiting"),
      ]);

      connections[0]?.succeed();

      expect(count(connections, "begun")).toBe(5);
      expect(connections[5]?.state).toBe("waiting");
    });

    it("hands over a hundred that come back together, each when another has ended", () => {
      const connections = connectMany(100, crossplane);

      for (const connection of connections) {
        expect(connection.state).toBe("begun");
        connection.succeed();
      }
    });

    it("goes on where one that had said nothing went away", async () => {
      const [silent, next] = connectMany(2, crossplane);
      if (silent !== undefined) silent.bytesRead = 0;

      await silent?.fail();

      expect(next?.state).toBe("begun");
    });

    it("passes over those that went away while they waited", async () => {
      const [first, gone, last] = connectMany(3, crossplane);
      await gone?.fail();

      first?.succeed();

      expect(gone?.begun).toBe(false);
      expect(last?.state).toBe("begun");
    });

    it("passes over one whose end is not told yet", () => {
      const [first, gone, last] = connectMany(3, crossplane);
      gone?.destroy();

      first?.succeed();

      expect(gone?.begun).toBe(false);
      expect(last?.state).toBe("begun");
    });

    it("counts those of one address that are open, whatever became of earlier ones", async () => {
      const [first, second] = connectMany(2, crossplane);
      first?.succeed();
      second?.succeed();
      const later = connectMany(5, crossplane);
      await first?.fail();
      await second?.fail();

      later.push(...connectMany(5, crossplane));
      expect(count(later, "begun")).toBe(4);
    });

    it.each([
      { name: "for an hour", afterMs: 3_600_000, want: 4 },
      { name: "no longer", afterMs: 3_600_001, want: 1 },
    ])("remembers who has succeeded $name", ({ afterMs, want }) => {
      connect(crossplane).succeed();
      nowMs += afterMs;

      expect(count(connectMany(5, crossplane), "begun")).toBe(want);
    });

    it("closes what has waited for 10 s, and not what has begun then", async () => {
      const [first, second, third] = connectMany(3, stranger);
      vi.advanceTimersByTime(9_999);
      if (first !== undefined) first.bytesRead = 0;
      await first?.fail();
      expect(second?.state).toBe("begun");
      expect(third?.state).toBe("waiting");

      vi.advanceTimersByTime(1);
      expect(second?.state).toBe("begun");
      expect(third?.state).toBe("closed");

      vi.advanceTimersByTime(60_000);
      expect(second?.state).toBe("begun");
    });

    it("closes none that has succeeded", () => {
      const connections = connectMany(2, crossplane);
      for (const connection of connections) connection.succeed();

      vi.advanceTimersByTime(60_000);

      expect(statesOf(connections)).toEqual(["begun", "begun"]);
    });
  });

  describe("after one that failed", () => {
    it("closes those that wait, and all that come within the pause", async () => {
      const [first, second] = connectMany(2, stranger);

      await first?.fail();

      expect(second?.state).toBe("closed");
      expect(connect(stranger).state).toBe("closed");
      nowMs = 999;
      expect(connect(stranger).state).toBe("closed");
      nowMs = 1_000;
      expect(connect(stranger).state).toBe("begun");
    });

    it("doubles the pause, up to 10 s", async () => {
      for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]) {
        await failNow(stranger);
        nowMs += pauseMs - 1;
        expect(connect(stranger).state).toBe("closed");
        nowMs += 1;
      }
    });

    it("does not lengthen it for those that are closed", async () => {
      await failNow(stranger);
      for (; nowMs < 1_000; nowMs += 10) {
        const connection = connect(stranger);
        expect(connection.state).toBe("closed");
        await connection.fail();
      }

      await failNow(stranger);

      nowMs += 2_000;
      expect(connect(stranger).state).toBe("begun");
    });

    it("does not lengthen it for those that had begun before", async () => {
      connect(crossplane).succeed();
      const connections = connectMany(4, crossplane);

      for (const connection of connections) await connection.fail();

      nowMs = 1_000;
      expect(connect(crossplane).state).toBe("begun");
    });

    it("has one at once, until one succeeds", async () => {
      connect(crossplane).succeed();
      await failNow(crossplane);
      nowMs = 1_000;
      const connections = connectMany(3, crossplane);
      expect(count(connections, "begun")).toBe(1);

      connections[0]?.succeed();

      expect(count(connections, "begun")).toBe(3);
    });

    it("forgets it after one that succeeds", async () => {
      await failNow(crossplane);
      nowMs += 1_000;
      await failNow(crossplane);
      nowMs += 2_000;
      connect(crossplane).succeed();

      await failNow(crossplane);

      nowMs += 1_000;
      expect(connect(crossplane).state).toBe("begun");
    });

    it("forgets it after ten minutes", async () => {
      await failNow(stranger);
      nowMs = 1_000;
      await failNow(stranger);
      nowMs += 600_001;

      await failNow(stranger);

      nowMs += 1_000;
      expect(connect(stranger).state).toBe("begun");
    });

    it("forgets it when what clients are judged by has changed", async () => {
      await failNow(crossplane);

      handshakes.forgive();

      expect(connect(crossplane).state).toBe("begun");
    });

    it.each([
      { name: "another address", other: crossplane, of: stranger },
      {
        name: "a pod of the same node, which has the same /64",
        other: "fd00:10:244:1::5",
        of: "fd00:10:244:1::6",
      },
      {
        name: "another IPv4 address on a socket of both kinds",
        other: "::ffff:10.0.0.1",
        of: "::ffff:10.0.0.66",
      },
    ])("lets $name in", async ({ other, of }) => {
      await failNow(of);

      expect(connect(of).state).toBe("closed");
      expect(connect(other).state).toBe("begun");
    });

    it("has no pause for who has said nothing, as a TCP probe", async () => {
      const probe = connect(crossplane);
      probe.bytesRead = 0;
      await probe.fail();

      expect(connect(crossplane).state).toBe("begun");
    });

    it("has no pause when one ends that had succeeded", async () => {
      const connection = connect(crossplane);
      connection.succeed();
      await connection.fail();

      expect(connect(crossplane).state).toBe("begun");
    });

    it("remembers the last thousand addresses only", async () => {
      await failNow("10.1.255.255");
      for (let i = 0; i < 1024; i++) await failNow(`10.1.${i >> 8}.${i & 255}`);

      expect(connect("10.1.255.255").state).toBe("begun");
      expect(connect("10.1.0.1").state).toBe("closed");
    });
  });

  describe("too many", () => {
    it("of one address: closes the newest", async () => {
      const connections = connectMany(128, stranger);

      const next = connect(stranger);

      expect(next.state).toBe("closed");
      expect(count(connections, "closed")).toBe(0);
      expect(connect(crossplane).state).toBe("begun");
      await connections.at(-1)?.fail();
      expect(connect(stranger).state).toBe("waiting");
    });

    it("in all: closes those of the address that has most", () => {
      const few = connectMany(100, "10.0.1.200");
      const groups = Array.from({ length: 7 }, (_, i) =>
        connectMany(124, `10.0.1.${i}`),
      );
      const others = groups.flat();
      const many = connectMany(56, "10.0.1.201");
      const one = connect("10.0.1.202");
      expect(count([...few, ...others, ...many, one], "closed")).toBe(1);

      const comers = Array.from({ length: 50 }, (_, i) =>
        connect(`10.0.2.${i}`),
      );

      expect(count([...few, ...many, one, ...comers], "closed")).toBe(0);
      expect(count(others, "closed")).toBe(51);
      expect(groups.map((group) => group[0]?.state)).toEqual(
        groups.map(() => "begun"),
      );
    });

    it("in all: counts those that have not ended", async () => {
      const ended = connectMany(1100, crossplane).slice(0, 128);
      for (const connection of ended) connection.succeed();
      for (const connection of ended) await connection.fail();
      for (let i = 0; i < 1100; i++) await failNow(`10.2.${i >> 8}.${i & 255}`);

      const connections = Array.from({ length: 1024 }, (_, i) =>
        connect(`10.3.${i >> 8}.${i & 255}`),
      );

      expect(count(connections, "closed")).toBe(0);
      connect(crossplane);
      expect(count(connections, "closed")).toBe(1);
    });

    it("in all, one of each: takes up the newest and goes on", () => {
      const connections = Array.from({ length: 1024 }, (_, i) =>
        connect(`10.2.${i >> 8}.${i & 255}`),
      );

      expect(connect(crossplane).state).toBe("begun");

      expect(count(connections, "closed")).toBe(1);
    });
  });

  it("closes what has no address any more", () => {
    const gone = new Connection(undefined);

    expect(gone.state).toBe("closed");
    expect(gone.begun).toBe(false);
  });

  it("does not fail over the error of one that waits", () => {
    const [, waiting] = connectMany(2, crossplane);

    expect(() => waiting?.emit("error", new Error("reset"))).not.toThrow();
  });

  it("does not believe that one has succeeded that had ended", async () => {
    const connection = connect(stranger);
    await connection.fail();

    connection.succeed();

    expect(connect(stranger).state).toBe("closed");
  });

  it("does not know who succeeds without having begun", () => {
    const [first, second] = connectMany(2, crossplane);

    second?.succeed();

    expect(first?.state).toBe("begun");
    expect(second?.state).toBe("waiting");
  });

  describe("the log", () => {
    const message = "connections of a peer are closed before TLS";

    it("tells of a peer once in ten minutes", async () => {
      const tryAgain = async () => {
        await failNow(stranger);
        for (let i = 0; i < 3; i++) connect(stranger);
      };
      await tryAgain();
      nowMs = 599_000;
      await tryAgain();
      expect(lines).toEqual([
        { level: "warn", message, fields: { peer: stranger, reason: failed } },
      ]);

      nowMs = 600_001;
      connect(stranger);

      expect(lines).toHaveLength(2);
    });

    it("tells of each peer", async () => {
      for (const address of [stranger, "10.0.0.67"]) {
        await failNow(address);
        connect(address);
      }

      expect(lines.map(({ fields }) => fields["peer"])).toEqual([
        stranger,
        "10.0.0.67",
      ]);
    });

    it("tells of ten peers a second at most, and of the others later", async () => {
      const many = Array.from({ length: 50 }, (_, n) => `10.0.1.${n}`);
      for (const address of many) await failNow(address);

      for (const address of many) connect(address);
      expect(lines).toHaveLength(10);

      nowMs = 500;
      for (const address of many) connect(address);
      expect(lines).toHaveLength(15);
    });

    it("says nothing where nothing was closed", async () => {
      await failNow(stranger);

      expect(lines).toEqual([]);
    });

    it.each([
      {
        name: "128 of one address",
        fill: () => connectMany(129, stranger),
        reason: "too many TLS handshakes of this address have not ended",
      },
      {
        name: "1,024 in all, which is one line whoever they are of",
        fill: () =>
          Array.from({ length: 2000 }, (_, i) =>
            connect(`10.3.${i >> 8}.${i & 255}`),
          ),
        reason: "too many TLS handshakes have not ended",
      },
    ])("tells that there are too many: $name", ({ fill, reason }) => {
      fill();

      expect(lines).toMatchObject([{ message, fields: { reason } }]);
    });
  });
});
