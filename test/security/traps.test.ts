import { afterAll, beforeAll, describe, expect, it } from "vitest";

import type { ModuleLease } from "../../src/engine/index.js";
import {
  messages,
  MiB,
  refusal,
  residentBytes,
  startEngine,
  type TestEngine,
} from "../support/engine.js";

/** Each way a guest can fault, and what its caller is told. */
const traps = [
  { guest: "hostile/unreachable", want: /unreachable/ },
  { guest: "hostile/div-zero", want: /integer divide by zero/ },
  { guest: "hostile/int-overflow", want: /integer overflow/ },
  { guest: "hostile/bad-conversion", want: /invalid conversion to integer/ },
  { guest: "hostile/load-oob", want: /out of bounds memory access/ },
  { guest: "hostile/store-oob", want: /out of bounds memory access/ },
  { guest: "hostile/call-null", want: /uninitialized element/ },
  { guest: "hostile/call-bad-signature", want: /indirect call type mismatch/ },
  { guest: "hostile/call-oob", want: /out of bounds table access/ },
  { guest: "hostile/stack-overflow", want: /call stack exhausted/ },
];

const otherTraps = [
  { guest: "hostile/stack-overflow-table", want: /call stack exhausted/ },
  { guest: "hostile/trap-start", want: /unreachable/ },
  { guest: "hostile/trap-initialize", want: /unreachable/ },
  { guest: "hostile/trap-alloc", want: /unreachable/ },
  { guest: "hostile/trap-data", want: /out of bounds/ },
  { guest: "hostile/trap-named", want: /unreachable/ },
  { guest: "v2/unreachable", want: /unreachable/ },
  { guest: "v2/async-no-return", want: /./ },
  { guest: "v2/bad-discriminant", want: /discriminant|variant/ },
  { guest: "v2/error-bad-utf8", want: /utf-?8/i },
  { guest: "v2/response-outside", want: /pointer|bounds/ },
  { guest: "v2/realloc-outside", want: /realloc|bounds|pointer/ },
];

describe("security/traps", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  it.each([...traps, ...otherTraps])(
    "tells the caller of $guest what happened",
    async ({ guest, want }) => {
      const error = await refusal(engine.call(guest));

      expect(error.code).toBe("run-trap");
      expect(error.message).toMatch(/^module Path module-\d+\.wasm failed: /);
      expect(error.message).toMatch(want);
      expect(error.detail ?? "").not.toMatch(/\p{Cc}/u);
    },
  );

  it("tells no caller what the host's addresses are", async () => {
    const errors = await Promise.all(
      [...traps, ...otherTraps].map(({ guest }) => refusal(engine.call(guest))),
    );

    for (const { message, detail } of errors) {
      expect(`${message} ${detail ?? ""}`).not.toMatch(
        /0x[0-9a-f]{9,}|\/home\//,
      );
    }
  });

  it("survives 10,000 faults between good runs, and so do V8's own traps", async () => {
    expectV8Traps();
    const good = await engine.load("v1/hello");
    const goodComponent = await engine.load("v2/hello");
    const bad = await Promise.all(
      traps.map(async (row) => ({
        ...row,
        lease: await engine.load(row.guest),
      })),
    );
    await storm(bad, 100);
    const before = residentBytes();

    for (let round = 0; round < 10; round++) {
      await storm(bad, 1_000);
      expect(messages(await engine.run(good))).toEqual(["hello world"]);
      expect(messages(await engine.run(goodComponent))).toEqual([
        "hello world",
      ]);
      expectV8Traps();
    }

    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    for (const { lease } of [
      ...bad,
      { lease: good },
      { lease: goodComponent },
    ]) {
      lease.release();
    }
  });

  async function storm(
    bad: readonly { readonly lease: ModuleLease; readonly want: RegExp }[],
    runs: number,
  ): Promise<void> {
    const kinds = bad.length;
    const outcomes = await Promise.allSettled(
      Array.from({ length: runs }, (_, index) => {
        const lease = bad[index % kinds]?.lease;
        if (lease === undefined) throw new Error("no lease");
        return engine.run(lease);
      }),
    );
    outcomes.forEach((outcome, index) => {
      const reason: unknown =
        outcome.status === "rejected" ? outcome.reason : "an answer";
      expect(reason).toMatchObject({ code: "run-trap" });
      expect(String(reason)).toMatch(bad[index % kinds]?.want ?? /^$/);
    });
  }
});

/**
 * `(memory 1) (export "load": i32.load (param))`, `(export "div": i32.div_s 1 (param))`. V8 finds
 * the first by a signal, whose handler it shares with the sandbox.
 */
const v8Module = Buffer.from(
  "0061736d0100000001060160017f017f030302000005030100010" +
    "70e02046c6f6164000003646976000" +
    "10a11020700200028020" +
    "00b0700410120006d0b",
  "hex",
);

/** What Node's typings leave out of the global of that name. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => {
    readonly exports: Readonly<Record<string, (value: number) => number>>;
  };
  readonly RuntimeError: new () => Error;
};

function expectV8Traps(): void {
  const { exports } = new WebAssembly.Instance(
    new WebAssembly.Module(v8Module),
  );
  const { load, div } = exports;
  for (let round = 0; round < 100; round++) {
    expect(() => load?.(0x7fffffff)).toThrow(WebAssembly.RuntimeError);
    expect(() => div?.(0)).toThrow(WebAssembly.RuntimeError);
  }
  expect(load?.(0)).toBe(0);
  expect(div?.(1)).toBe(1);
}
