import { describe, expect, it } from "vitest";
import type {
  HelperAnswer,
  HelperEnv,
} from "../../../../src/loader/oci/credential-helper.js";
import { createCredentialHelpers } from "../../../../src/loader/oci/credential-helpers.js";
import { createRequestScope } from "../../../../src/request-scope.js";

const ENV = { PATH: "/bin" };
const NONE: HelperAnswer = { kind: "none" };
const FOUND: HelperAnswer = {
  kind: "credential",
  credential: { kind: "basic", username: "u", password: "hunter2" },
};

describe("loader/oci/credential-helpers", () => {
  it.each([
    { name: "a credential", answer: FOUND, holdsForMs: 300_000 },
    { name: "that there is none", answer: NONE, holdsForMs: 300_000 },
    {
      name: "a failure",
      answer: { kind: "failed", message: "m" } as const,
      holdsForMs: 10_000,
    },
    {
      name: "that there is no such helper",
      answer: { kind: "missing", message: "m" } as const,
      holdsForMs: 10_000,
    },
  ])("remembers $name for $holdsForMs ms", async ({ answer, holdsForMs }) => {
    const { ask, runs, clock } = setUp(answer);

    expect(await ask("x", "a.io")).toBe(answer);
    clock.now += holdsForMs - 1;
    expect(await ask("x", "a.io")).toBe(answer);
    expect(runs).toHaveLength(1);
    clock.now += 1;
    expect(await ask("x", "a.io")).toBe(answer);
    expect(runs).toHaveLength(2);
  });

  it("asks once for each helper and server, with the environment", async () => {
    const { ask, runs } = setUp(FOUND);

    for (const [name, server] of [
      ["x", "a.io"],
      ["x", "b.io"],
      ["y", "a.io"],
      ["x", "a.io"],
    ] as const)
      await ask(name, server);

    expect(runs).toEqual([
      ["x", "a.io", ENV],
      ["x", "b.io", ENV],
      ["y", "a.io", ENV],
    ]);
  });

  it("shares one run among those who ask at once, and keeps it when one of them goes", async () => {
    const { helpers, runs, finishFirst } = setUp(FOUND, "by hand");
    const leaving = createRequestScope({ deadlineAtMs: Infinity });
    const staying = createRequestScope({ deadlineAtMs: Infinity });

    const left = helpers.ask("x", "a.io", leaving);
    const stayed = helpers.ask("x", "a.io", staying);
    leaving.cancel();

    await expect(left).rejects.toMatchObject({ code: "resolve-cancelled" });
    finishFirst();
    expect(await stayed).toBe(FOUND);
    expect(await helpers.ask("x", "a.io", staying)).toBe(FOUND);
    expect(runs).toHaveLength(1);
  });

  it("runs four at once, and the rest in their turn", async () => {
    const { ask, finishFirst, runs } = setUp(FOUND, "by hand");
    const servers = Array.from({ length: 10 }, (_, at) => `h${at}.io`);

    const answers = Promise.all(servers.map((server) => ask("x", server)));
    await settle();
    expect(runs).toHaveLength(4);
    for (let ended = 1; ended <= 10; ended++) {
      finishFirst();
      await settle();
      expect(runs).toHaveLength(Math.min(10, 4 + ended));
    }

    expect(await answers).toEqual(servers.map(() => FOUND));
    expect(runs.map(([, server]) => server)).toEqual(servers);
  });

  it("has nobody wait for his turn longer than his request", async () => {
    const { ask, helpers, runs, finishFirst } = setUp(FOUND, "by hand");
    const others = ["a.io", "b.io", "c.io", "d.io"].map((at) => ask("x", at));
    const leaving = createRequestScope({ deadlineAtMs: Infinity });

    const left = helpers.ask("x", "e.io", leaving);
    leaving.cancel();

    await expect(left).rejects.toMatchObject({ code: "resolve-cancelled" });
    expect(runs).toHaveLength(4);
    for (let each = 0; each < 4; each++) finishFirst();
    expect(await Promise.all(others)).toEqual(Array(4).fill(FOUND));
  });
});

/** Until everything that can go on has done so. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function setUp(
  answer: HelperAnswer,
  finishes: "at once" | "by hand" = "at once",
) {
  const clock = {
    now: 0,
    nowMs: () => clock.now,
    monotonicMs: () => clock.now,
  };
  const runs: [string, string, HelperEnv][] = [];
  const running: (() => void)[] = [];
  const helpers = createCredentialHelpers(ENV, clock, (...asked) => {
    runs.push(asked);
    return new Promise((resolve) => {
      if (finishes === "at once") resolve(answer);
      else running.push(() => resolve(answer));
    });
  });
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  return {
    helpers,
    ask: (name: string, server: string) => helpers.ask(name, server, scope),
    runs,
    clock,
    /** Ends the run that began first. */
    finishFirst: () => running.shift()?.(),
  };
}
