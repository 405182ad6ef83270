import { afterAll, beforeAll, describe, expect, it } from "vitest";

import {
  messages,
  MiB,
  refusal,
  residentBytes,
  startEngine,
  type TestEngine,
} from "../support/engine.js";

describe("security/responses", () => {
  let engine: TestEngine;
  beforeAll(async () => {
    engine = await startEngine();
  });
  afterAll(() => engine.close());

  const outside = /wasmfn_run returned \d+ bytes at \d+, expected .*memory/;
  const notOne = /the response is not a RunFunctionResponse: /;
  const tooLarge = /200000000 bytes, expected at most 16777216/;
  it.each([
    { guest: "hostile/response-outside", want: outside },
    { guest: "hostile/response-crosses-end", want: outside },
    { guest: "hostile/response-wraps", want: /4294967295 bytes, expected/ },
    { guest: "hostile/response-200mb", want: tooLarge },
    { guest: "v2/response-200mb", want: /bytes|fuel/ },
    { guest: "hostile/response-garbage", want: notOne },
    { guest: "hostile/response-truncated", want: notOne },
    { guest: "hostile/response-bad-submessage", want: notOne },
    { guest: "hostile/response-text", want: notOne },
    { guest: "hostile/response-bad-utf8", want: /not valid UTF-8/ },
    { guest: "v2/response-garbage", want: notOne },
    {
      guest: "hostile/alloc-oob",
      want: /wasmfn_alloc\(\d+\) returned \d+, expected .*memory/,
    },
    {
      guest: "hostile/alloc-crosses-end",
      want: /wasmfn_alloc\(\d+\) returned \d+, expected .*memory/,
    },
    {
      guest: "hostile/alloc-negative",
      want: /wasmfn_alloc\(\d+\) returned \d+, expected .*memory/,
    },
  ])("refuses the answer of $guest", async ({ guest, want }) => {
    const before = residentBytes();

    const error = await refusal(
      engine.call(guest, {
        request: Buffer.from("\n\x03\n\x01t"),
        memoryBytes: 256 * MiB,
      }),
    );

    expect(["response-invalid", "run-trap"]).toContain(error.code);
    expect(error.message).toMatch(/^module Path module-\d+\.wasm failed: /);
    expect(error.message).toMatch(want);
    expect(residentBytes() - before).toBeLessThan(300 * MiB);
  });

  it("keeps no part of the answers it refused", async () => {
    const lease = await engine.load("hostile/response-200mb");
    const refuseOne = () =>
      refusal(engine.run(lease, { memoryBytes: 256 * MiB }));
    await refuseOne();
    const before = residentBytes();

    for (let round = 0; round < 10; round++) await refuseOne();

    expect(residentBytes() - before).toBeLessThan(64 * MiB);
    expect(messages(await engine.call("v1/hello"))).toEqual(["hello world"]);
    lease.release();
  });
});
