import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseQuantity } from "../../../src/admission/index.js";

const MI = 1n << 20n;
const GI = 1n << 30n;

describe("admission/quantity", () => {
  it.each([
    { text: "0", want: 0n },
    { text: "00012", want: 12n },
    { text: "134217728", want: 134217728n },
    { text: "128Mi", want: 134217728n },
    { text: "0.5Gi", want: 536870912n },
    { text: ".5Gi", want: 536870912n },
    { text: "1.5Gi", want: (3n * GI) / 2n },
    { text: "5.", want: 5n },
    { text: "5.Mi", want: 5n * MI },
    { text: "+1Gi", want: GI },
    { text: "-1Gi", want: -GI },
    { text: "-1.5", want: -2n, reason: "rounds away from zero" },
    { text: "1n", want: 1n },
    { text: "1u", want: 1n },
    { text: "100m", want: 1n },
    { text: "1000m", want: 1n },
    { text: "1001m", want: 2n },
    { text: "0m", want: 0n },
    { text: "2k", want: 2000n },
    { text: "500M", want: 500_000_000n },
    { text: "1G", want: 10n ** 9n },
    { text: "1T", want: 10n ** 12n },
    { text: "1P", want: 10n ** 15n },
    { text: "1E", want: 10n ** 18n, reason: "E alone is exa" },
    { text: "1Ki", want: 1024n },
    { text: "1Ti", want: 1n << 40n },
    { text: "1Pi", want: 1n << 50n },
    { text: "1Ei", want: 1n << 60n },
    { text: "1e3", want: 1000n },
    { text: "1E3", want: 1000n, reason: "E and digits is an exponent" },
    { text: "1e+3", want: 1000n },
    { text: "1E-3", want: 1n },
    { text: "1.25e1", want: 13n },
    { text: "12345678901234567890123", want: 12345678901234567890123n },
    {
      text: "9007199254740993",
      want: 9007199254740993n,
      reason: "not through a double",
    },
    { text: "0.00000000000000000000000001Ki", want: 1n },
    { text: "0.9999999999999999999999999999999999999Ei", want: 1n << 60n },
  ])("reads $text as $want", ({ text, want }) => {
    expect(parseQuantity(text)).toEqual({ kind: "ok", value: want });
  });

  it.each([
    { text: "", want: "expected digits first" },
    { text: "+", want: "expected digits first" },
    { text: ".", want: "expected digits first" },
    { text: "Mi", want: "expected digits first" },
    { text: "abc", want: "expected digits first" },
    { text: " 128Mi", want: "expected digits first" },
    { text: "--1", want: "expected digits first" },
    { text: "128mi", want: 'unknown suffix "mi"' },
    { text: "128MiB", want: 'unknown suffix "MiB"' },
    { text: "128MB", want: 'unknown suffix "MB"' },
    { text: "128K", want: 'unknown suffix "K"' },
    { text: "128ki", want: 'unknown suffix "ki"' },
    { text: "128i", want: 'unknown suffix "i"' },
    { text: "1 Gi", want: 'unknown suffix " Gi"' },
    { text: "128Mi ", want: 'unknown suffix "Mi "' },
    { text: "128Mi\n", want: 'unknown suffix "Mi\\u000a"' },
    { text: "1.2.3", want: 'unknown suffix ".3"' },
    { text: "1,5Gi", want: 'unknown suffix ",5Gi"' },
    { text: "1e", want: 'unknown suffix "e"' },
    { text: "1e+", want: 'unknown suffix "e+"' },
    { text: "1e1.5", want: 'unknown suffix "e1.5"' },
    { text: "1Ee3", want: 'unknown suffix "Ee3"' },
    { text: "1e3Mi", want: 'unknown suffix "e3Mi"' },
    { text: "0x10", want: 'unknown suffix "x10"' },
    { text: "1_000", want: 'unknown suffix "_000"' },
    { text: "NaN", want: "expected digits first" },
    { text: "\u0661\u0662", want: "expected digits first" },
    { text: "1e1001", want: "exponent out of range" },
    { text: "1e-1001", want: "exponent out of range" },
    { text: "1e99999999999999999999", want: "exponent out of range" },
    { text: "1".repeat(129), want: "longer than 128 characters" },
  ])("refuses $text", ({ text, want }) => {
    const result = parseQuantity(text);

    expect(result).toMatchObject({ kind: "error" });
    const message = result.kind === "error" ? result.message : "";
    expect(message).toContain(
      `is not a Kubernetes quantity such as 128Mi: ${want}`,
    );
    expect(message).toMatch(/^[^\n]{1,400}$/);
  });

  it("agrees with exact rational arithmetic", () => {
    const scales = new Map<string, readonly [bigint, bigint]>([
      ["", [1n, 1n]],
      ["n", [1n, 10n ** 9n]],
      ["u", [1n, 10n ** 6n]],
      ["m", [1n, 10n ** 3n]],
      ["k", [10n ** 3n, 1n]],
      ["M", [10n ** 6n, 1n]],
      ["G", [10n ** 9n, 1n]],
      ["T", [10n ** 12n, 1n]],
      ["P", [10n ** 15n, 1n]],
      ["E", [10n ** 18n, 1n]],
      ["Ki", [1024n, 1n]],
      ["Mi", [1024n ** 2n, 1n]],
      ["Gi", [1024n ** 3n, 1n]],
      ["Ti", [1024n ** 4n, 1n]],
      ["Pi", [1024n ** 5n, 1n]],
      ["Ei", [1024n ** 6n, 1n]],
      ["e7", [10n ** 7n, 1n]],
      ["E-7", [1n, 10n ** 7n]],
      ["e+12", [10n ** 12n, 1n]],
    ]);
    const digits = fc.stringMatching(/^[0-9]{1,25}$/);

    fc.assert(
      fc.property(
        fc.constantFrom("", "+", "-"),
        digits,
        fc.option(digits, { nil: "" }),
        fc.constantFrom(...scales.keys()),
        (sign, whole, fraction, suffix) => {
          const text = `${sign}${whole}${fraction && `.${fraction}`}${suffix}`;
          const [up, down] = scales.get(suffix) ?? [0n, 1n];
          const dividend = BigInt(whole + fraction) * up;
          const divisor = 10n ** BigInt(fraction.length) * down;

          const result = parseQuantity(text);

          // The smallest whole number of bytes that is no less than the exact value.
          const magnitude =
            result.kind === "ok"
              ? result.value * (sign === "-" ? -1n : 1n)
              : -1n;
          expect(magnitude * divisor >= dividend).toBe(true);
          expect((magnitude - 1n) * divisor < dividend).toBe(true);
        },
      ),
    );
  });

  it("never throws and stays on one short line, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const result = parseQuantity(text);

        if (result.kind === "error")
          expect(result.message).toMatch(/^[^\p{C}]{1,2000}$/u);
      }),
    );
  });
});
