import { beforeEach, describe, expect, it } from "vitest";
import {
  createGrantMemory,
  type Grant,
  type GrantMemory,
} from "../../../../src/loader/oci/grant-memory.js";
import { refuse } from "../../../../src/loader/refuse.js";
import { createRequestScope } from "../../../../src/request-scope.js";

const WAITING_FOR = "a token from ghcr.io";

let nowMs: number;
let memory: GrantMemory;

describe("loader/oci/grant-memory", () => {
  beforeEach(() => {
    nowMs = 1000;
    memory = createGrantMemory({ nowMs: () => 0, monotonicMs: () => nowMs });
  });

  it("recalls a grant until it expires", () => {
    const grant = grantOf("a", 2000);
    memory.remember("k", grant);

    nowMs = 1999;
    expect(memory.recall("k")).toBe(grant);
    nowMs = 2000;
    expect(memory.recall("k")).toBeUndefined();
    expect(memory.recall("other")).toBeUndefined();
  });

  it("forgets a grant, and none that took its place", () => {
    const [first, second] = [grantOf("a"), grantOf("b")];
    memory.remember("k", second);

    memory.forget("k", first);
    memory.forget("k", undefined);
    expect(memory.recall("k")).toBe(second);
    memory.forget("k", second);
    expect(memory.recall("k")).toBeUndefined();
  });

  it("remembers the last 1000 grants", () => {
    for (let i = 0; i <= 1000; i++) memory.remember(String(i), grantOf("a"));

    expect(memory.recall("0")).toBeUndefined();
    expect(memory.recall("1")).toBeDefined();
    expect(memory.recall("1000")).toBeDefined();
  });

  it("shares what is on its way for the same source, and nothing else", async () => {
    const starts: string[] = [];
    const share = (source: string) =>
      memory.share(source, WAITING_FOR, caller(), () => {
        starts.push(source);
        return Promise.resolve(grantOf(source));
      });

    const [a, b, other] = await Promise.all([
      share("s"),
      share("s"),
      share("t"),
    ]);
    await share("s");

    expect(a).toBe(b);
    expect(other.source).toBe("t");
    expect(starts).toEqual(["s", "t", "s"]);
  });

  it("fails for all who wait, and starts anew for the next", async () => {
    const failure = refuse("registry-unreachable", "gone");
    const failing = () =>
      memory.share("s", WAITING_FOR, caller(), () => Promise.reject(failure));

    const failed = await Promise.allSettled([failing(), failing()]);
    const next = await memory.share("s", WAITING_FOR, caller(), () =>
      Promise.resolve(grantOf("s")),
    );

    expect(failed).toEqual([
      { status: "rejected", reason: failure },
      { status: "rejected", reason: failure },
    ]);
    expect(next.source).toBe("s");
  });

  it("goes on for the others when one goes away", async () => {
    const { promise, resolve } = deferred();
    const gone = caller();
    const leaving = memory.share("s", WAITING_FOR, gone, () => promise);
    const staying = memory.share("s", WAITING_FOR, caller(), notCalled);

    gone.cancel();

    await expect(leaving).rejects.toMatchObject({
      code: "resolve-cancelled",
      message: "the request ended while it waited for a token from ghcr.io",
    });
    resolve(grantOf("s"));
    expect((await staying).source).toBe("s");
  });

  it("lets go of one who had gone before, and whose deadline has passed", async () => {
    const { promise } = deferred();
    const gone = caller();
    gone.cancel();
    const late = createRequestScope({ deadlineAtMs: nowMs });

    await expect(
      memory.share("s", WAITING_FOR, gone, () => promise),
    ).rejects.toMatchObject({ code: "resolve-cancelled" });
    await expect(
      memory.share("s", WAITING_FOR, late, notCalled),
    ).rejects.toMatchObject({
      code: "registry-unreachable",
      message:
        "the request's deadline came while it waited for a token from ghcr.io",
    });
  });
});

function caller() {
  return createRequestScope({ deadlineAtMs: Infinity });
}

function grantOf(source: string, expiresAtMs = Infinity): Grant {
  const authorization = `Bearer ${source}`;
  return { authorization, usedCredential: false, expiresAtMs, source };
}

function notCalled(): Promise<Grant> {
  return Promise.reject(new Error("started twice"));
}

function deferred() {
  let resolve: (grant: Grant) => void = () => undefined;
  const promise = new Promise<Grant>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
