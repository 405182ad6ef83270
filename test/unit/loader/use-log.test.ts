import { describe, expect, it } from "vitest";
import { createUseLog } from "../../../src/loader/use-log.js";
import { handClock } from "./store/fixtures.js";
import { digestOf } from "./store/store-content.js";

describe("loader/use-log", () => {
  it("knows what was used since a time, to ten seconds", () => {
    const clock = handClock();
    const log = createUseLog(clock);
    const a = digestOf("a");
    const b = digestOf("b");
    const c = digestOf("c");

    log.used(a);
    log.used(b);
    clock.advance(10_000);
    log.used(c);
    log.used(a);

    expect(new Set(log.since(0))).toEqual(new Set([a, b, c]));
    expect(new Set(log.since(1))).toEqual(new Set([a, c]));
    expect(new Set(log.since(10_000))).toEqual(new Set([a, c]));
    clock.advance(9_999);
    log.used(a);
    expect([...log.since(10_001)]).toEqual([]);
    clock.advance(1);
    log.used(a);
    expect([...log.since(10_001)]).toEqual([a]);
  });

  it("forgets what was used the longest time ago first", () => {
    const clock = handClock();
    const log = createUseLog(clock);
    const oldest = digestOf("oldest");
    log.used(oldest);
    const others = Array.from({ length: 9_999 }, (_, i) => digestOf(`${i}`));
    for (const digest of others) log.used(digest);
    expect([...log.since(0)]).toHaveLength(10_000);

    log.used(oldest);
    log.used(digestOf("one more"));

    const left = new Set(log.since(0));
    expect(left.size).toBe(10_000);
    expect(left.has(oldest)).toBe(true);
    expect(left.has(digestOf("0"))).toBe(false);
  });
});
