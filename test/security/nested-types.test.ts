import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  messages,
  MiB,
  residentBytes,
  scope,
  startEngine,
  timed,
  type TestEngine,
} from "../support/engine.js";
import { assembleText } from "../support/guests.js";
import { componentWith } from "../support/hostile-modules.js";
import { nestTypes } from "../support/wasm-binary.js";

/**
 * Types within types: whoever reads them recurses. A few kilobytes overflow the stack of a thread,
 * and would take its process along.
 */
describe("security/nested-types", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  const depths = [1_000, 100_000, 1_000_000];
  it.each([
    ...depths.map((depth) => ({ kind: "component" as const, depth })),
    ...depths.map((depth) => ({ kind: "instance" as const, depth })),
  ])(
    "refuses $depth nested $kind types, and goes on",
    async ({ kind, depth }) => {
      const module = await engine.write(nestTypes(kind, depth));
      const compiled = engine.compiles();
      const before = residentBytes();

      const { outcome, ms } = await timed(engine.engine.load(module, scope()));

      expect(outcome).toMatchObject({ reason: { code: "module-invalid" } });
      expect(ms).toBeLessThan(5_000);
      expect(engine.compiles()).toBe(compiled);
      expect(residentBytes() - before).toBeLessThan(100 * MiB);
      expect(messages(await engine.call("v2/hello"))).toEqual(["hello world"]);
    },
  );

  it("says what happened, and remembers it", async () => {
    const module = await engine.write(nestTypes("component", 200_000));

    const first = await timed(engine.engine.load(module, scope()));
    const again = await timed(engine.engine.load(module, scope()));

    expect(first.outcome).toMatchObject({
      reason: {
        message: `module ${module.description} cannot be loaded: it could not be checked: it crashed the compiler (SIGABRT: thread 'main' has overflowed its stack)`,
      },
    });
    expect(again.outcome).toMatchObject({ reason: { code: "module-invalid" } });
    expect(again.ms).toBeLessThan(10);
  });

  // Each type refers to the one before it, so no parser recurses, but whoever walks them does.
  const chains = [
    {
      name: "lists of lists, in the log function",
      make: (depth: number) =>
        componentWith(`
          (type $l0 (list u8))
          ${chain(depth, (n) => `(type $l${n + 1} (list $l${n}))`)}
          (type $last (func (param "x" $l${depth})))
          (import "log" (func $log (type $last)))`),
    },
    {
      name: "instances of instances, as an interface of WASI",
      make: (depth: number) =>
        componentWith(`
          (type $i0 (instance))
          ${chain(depth, (n) => `(type $i${n + 1} (instance (export "x" (instance (type $i${n})))))`)}
          (import "wasi:random/random@0.2.0" (instance (type $i${depth})))`),
    },
    {
      name: "options of options, in a function of WASI",
      make: (depth: number) =>
        componentWith(`
          (type $interface (instance
            (type $o0 (option u8))
            ${chain(depth, (n) => `(type $o${n + 1} (option $o${n}))`)}
            (export "get-random-u64" (func (result $o${depth})))))
          (import "wasi:random/random@0.2.0" (instance (type $interface)))`),
    },
  ];
  it.each(
    chains.flatMap((row) =>
      [50, 90, 1_000, 20_000].map((depth) => ({ ...row, depth })),
    ),
  )("survives a chain of $depth $name", async ({ make, depth }) => {
    const module = await engine.write(await assembleText(make(depth)));

    const { outcome, ms } = await timed(engine.engine.load(module, scope()));

    // What nobody calls may be as it likes.
    if (outcome.status === "rejected") {
      const { code } = outcome.reason as { code: string };
      expect(["module-invalid", "compile-failed"]).toContain(code);
    }
    expect(ms).toBeLessThan(10_000);
    expect(messages(await engine.call("v2/hello"))).toEqual(["hello world"]);
  });
});

function chain(depth: number, link: (index: number) => string): string {
  return Array.from({ length: depth }, (_, index) => link(index)).join("\n");
}
