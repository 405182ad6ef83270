import type { LookupAddress } from "node:dns";
import { describe, expect, it, vi } from "vitest";
import { createLookup } from "../../../../src/loader/http/lookup.js";
import { handClock } from "../store/fixtures.js";

const ONE = [{ address: "192.0.2.1", family: 4 }];
const TWO = [...ONE, { address: "2001:db8::2", family: 6 }];

describe("loader/http/lookup", () => {
  it("gives all addresses, or the first one, as it is asked", async () => {
    const { ask } = lookups(() => Promise.resolve(TWO));

    expect(await ask("h.test")).toEqual(TWO);
    expect(await ask("h.test", false)).toEqual(ONE);
  });

  it("gives why there are none", async () => {
    const { ask } = lookups(() => Promise.reject(failure("ENOTFOUND")));

    await expect(ask("h.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });

  it("really asks the system", async () => {
    const lookup = createLookup(handClock());

    const address = await new Promise((resolve) => {
      lookup("localhost", { family: 4 }, (_, found) => resolve(found));
    });

    expect(address).toBe("127.0.0.1");
  });

  it("looks a name up once for all who ask at once", async () => {
    const { ask, asked, answer } = held();

    const both = Promise.all([ask("h.test"), ask("h.test")]);
    await answer("h.test", ONE);

    expect(await both).toEqual([ONE, ONE]);
    expect(asked).toEqual(["h.test"]);
  });

  it("leaves a name that was found quickly to wait for no other one", async () => {
    const { ask, asked, answer } = held();
    const first = ask("good.test");
    await answer("good.test", ONE);
    await first;
    const slow = ["a", "b", "c"].map((name) => ask(`${name}.evil.test`));

    const again = ask("good.test");
    await answer("good.test", TWO);

    expect(await again).toEqual(TWO);
    expect(asked.toSorted()).toEqual(["a.evil.test", "good.test", "good.test"]);
    for (const name of ["a", "b", "c"]) await answer(`${name}.evil.test`, ONE);
    await Promise.all(slow);
  });

  it("lets a name that took long wait again", async () => {
    const { ask, asked, answer, clock } = held();
    const first = ask("h.test");
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    clock.advance(1_000);
    await answer("h.test", ONE);
    await first;
    const slow = ask("a.evil.test");

    const again = ask("h.test");

    await vi.waitFor(() => expect(asked).toHaveLength(2));
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(asked).toEqual(["h.test", "a.evil.test"]);
    await answer("a.evil.test", ONE);
    await slow;
    await answer("h.test", ONE);
    await again;
  });

  it("looks up nothing for somebody who has gone", async () => {
    const { ask, asked, answer, clock } = held();
    const slow = ask("a.evil.test");
    const late = expect(ask("h.test")).rejects.toMatchObject({
      code: "EAI_AGAIN",
    });
    await vi.waitFor(() => expect(asked).toHaveLength(1));
    clock.advance(3_001);

    await answer("a.evil.test", ONE);

    await slow;
    await late;
    expect(asked).toEqual(["a.evil.test"]);
  });

  describe("of a host that was found in the last ten minutes", () => {
    it("gives what it was when there is no answer in half a second", async () => {
      const { ask, answer, clock } = held();
      const first = ask("h.test");
      await answer("h.test", ONE);
      await first;
      clock.advance(599_999);

      const startedAtMs = performance.now();
      expect(await ask("h.test")).toEqual(ONE);

      expect(performance.now() - startedAtMs).toBeGreaterThan(450);
      // What comes late is no second answer to who asked, and news to the next one.
      await answer("h.test", TWO);
      expect(await ask("h.test")).toEqual(TWO);
    });

    it("gives what it was when nobody can tell", async () => {
      const { ask } = lookups(
        () => Promise.resolve(ONE),
        () => Promise.reject(failure("EAI_AGAIN")),
      );
      await ask("h.test");

      expect(await ask("h.test")).toEqual(ONE);
    });

    it("believes that it is gone", async () => {
      const { ask } = lookups(
        () => Promise.resolve(ONE),
        () => Promise.reject(failure("ENOTFOUND")),
        () => Promise.reject(failure("EAI_AGAIN")),
      );
      await ask("h.test");

      await expect(ask("h.test")).rejects.toMatchObject({ code: "ENOTFOUND" });
      await expect(ask("h.test")).rejects.toMatchObject({ code: "EAI_AGAIN" });
    });
  });

  it("forgets where a host was ten minutes ago", async () => {
    const { ask, clock } = lookups(
      () => Promise.resolve(ONE),
      () => Promise.reject(failure("EAI_AGAIN")),
    );
    await ask("h.test");
    clock.advance(600_000);

    await expect(ask("h.test")).rejects.toMatchObject({ code: "EAI_AGAIN" });
  });
});

type Find = () => Promise<readonly LookupAddress[]>;

/** @param script what each look-up does, in order; the last one also what all after it do */
function lookups(...script: readonly Find[]) {
  let calls = 0;
  return asking(() => {
    const find = script[Math.min(calls, script.length - 1)];
    calls += 1;
    return find === undefined ? Promise.resolve([]) : find();
  });
}

/** Look-ups that take as long as the test wants. */
function held() {
  const asked: string[] = [];
  const waiting = new Map<string, (found: readonly LookupAddress[]) => void>();
  const lookup = asking((host) => {
    asked.push(host);
    return new Promise((resolve) => waiting.set(host, resolve));
  });
  return {
    ...lookup,
    asked,
    /** Ends the look-up of a name, which begins a moment after it was asked for. */
    answer: async (host: string, found: readonly LookupAddress[]) => {
      await vi.waitFor(() => expect([...waiting.keys()]).toContain(host));
      waiting.get(host)?.(found);
      waiting.delete(host);
    },
  };
}

function asking(find: (host: string) => Promise<readonly LookupAddress[]>) {
  const clock = handClock();
  const lookup = createLookup(clock, find);
  const ask = (host: string, all = true): Promise<LookupAddress[]> =>
    new Promise((resolve, reject) => {
      lookup(host, { all }, (error, found, family) => {
        if (error !== null) reject(error);
        else if (typeof found === "string")
          resolve([{ address: found, family: family ?? 0 }]);
        else resolve(found);
      });
    });
  return { ask, clock };
}

function failure(code: string): Error {
  return Object.assign(new Error(code), { code });
}
