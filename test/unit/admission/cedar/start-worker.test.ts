import { describe, expect, it } from "vitest";

import { wasmCallFlag } from "../../../../src/admission/cedar/start-worker.js";

describe("admission/cedar/start-worker", () => {
  it.each([
    { name: "Node 20", version: "11.3.244.8-node.38", want: true },
    { name: "Node 22", version: "12.4.254.21-node.56", want: true },
    { name: "Node 26", version: "14.6.202.34-node.40", want: true },
    // Would be told on stderr that it is unknown, were it gone.
    { name: "a V8 nobody has seen", version: "15.0.1", want: false },
  ])("sets the flag about calls for $name: $want", ({ version, want }) => {
    expect(wasmCallFlag(version)).toBe(
      want ? "--no-turbo-inline-js-wasm-calls" : null,
    );
  });
});
