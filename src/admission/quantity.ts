import { quoted } from "../errors.js";

/** A whole number of bytes, or why the text is none. */
export type QuantityResult =
  | { readonly kind: "ok"; readonly value: bigint }
  | { readonly kind: "error"; readonly message: string };

const MAX_CHARS = 128;
/** Far beyond any size; keeps `1e999999999` from building a number of a gigabyte. */
const MAX_EXPONENT = 1000;

const QUANTITY =
  /^(?<sign>[+-]?)(?<whole>[0-9]*)(?:\.(?<fraction>[0-9]*))?(?<suffix>.*)$/su;
/** `1E` is exa, `1E3` an exponent: a suffix of one letter is looked up first. */
const EXPONENT = /^[eE](?<exponent>[+-]?[0-9]+)$/u;

const DECIMAL_SUFFIXES = new Map([
  ["n", -9],
  ["u", -6],
  ["m", -3],
  ["", 0],
  ["k", 3],
  ["M", 6],
  ["G", 9],
  ["T", 12],
  ["P", 15],
  ["E", 18],
]);
const BINARY_SUFFIXES = new Map([
  ["Ki", 10n],
  ["Mi", 20n],
  ["Gi", 30n],
  ["Ti", 40n],
  ["Pi", 50n],
  ["Ei", 60n],
]);

/**
 * Reads a Kubernetes quantity (k8s.io/apimachinery `resource.ParseQuantity`) as bytes: exact, and
 * rounded up (away from zero), so `100m` is 1. Stricter in two ways: there must be a digit (there,
 * `Ki`, `.` and `+` are zero), and the text is at most 128 characters with exponents within ±1000.
 * No cap at 2^63-1: what comes out is compared with a ceiling.
 */
export function parseQuantity(text: string): QuantityResult {
  if (text.length > MAX_CHARS)
    return refused(text, `longer than ${String(MAX_CHARS)} characters`);
  const {
    sign,
    whole = "",
    fraction = "",
    suffix = "",
  } = QUANTITY.exec(text)?.groups ?? {};
  const digits = whole + fraction;
  if (digits === "") return refused(text, "expected digits first");

  const scale = parseSuffix(suffix);
  if (scale === undefined) {
    return refused(
      text,
      `unknown suffix ${quoted(suffix)}, expected n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3`,
    );
  }
  if (Math.abs(scale.decimal) > MAX_EXPONENT)
    return refused(text, "exponent out of range");

  const power = scale.decimal - fraction.length;
  const unscaled = BigInt(digits) << scale.binary;
  const magnitude =
    power >= 0
      ? unscaled * 10n ** BigInt(power)
      : divideRoundingUp(unscaled, 10n ** BigInt(-power));
  return { kind: "ok", value: sign === "-" ? -magnitude : magnitude };
}

function parseSuffix(
  suffix: string,
): { decimal: number; binary: bigint } | undefined {
  const decimal = DECIMAL_SUFFIXES.get(suffix);
  if (decimal !== undefined) return { decimal, binary: 0n };
  const binary = BINARY_SUFFIXES.get(suffix);
  if (binary !== undefined) return { decimal: 0, binary };
  const exponent = EXPONENT.exec(suffix)?.groups?.["exponent"];
  return exponent === undefined
    ? undefined
    : { decimal: Number(exponent), binary: 0n };
}

function divideRoundingUp(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

function refused(text: string, reason: string): QuantityResult {
  return {
    kind: "error",
    message: `${quoted(text)} is not a Kubernetes quantity such as 128Mi: ${reason}`,
  };
}
