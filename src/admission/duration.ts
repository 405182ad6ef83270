import { quoted } from "../errors.js";

/** Nanoseconds, or why the text is no duration. */
export type DurationResult =
  | { readonly kind: "ok"; readonly nanos: bigint }
  | { readonly kind: "error"; readonly message: string };

const MAX_CHARS = 128;
/** Go keeps nanoseconds in 64 bits: -2^63 is the shortest duration, 2^63-1 the longest. */
const LIMIT_NANOS = 1n << 63n;

const UNIT_NANOS = new Map([
  ["ns", 1n],
  ["us", 1_000n],
  ["\u00b5s", 1_000n], // micro sign
  ["\u03bcs", 1_000n], // Greek mu
  ["ms", 1_000_000n],
  ["s", 1_000_000_000n],
  ["m", 60_000_000_000n],
  ["h", 3_600_000_000_000n],
]);
const PART = /(?<whole>[0-9]*)(?:\.(?<fraction>[0-9]*))?(?<unit>[^0-9.]*)/suy;

/**
 * Reads a Go duration (`time.ParseDuration`): a sign, then one or more numbers with a unit, such as
 * `5s`, `1h30m` or `-1.5ms`. The same values as Go to the nanosecond, the rounding of fractions
 * included. Text longer than 128 characters is refused.
 */
export function parseGoDuration(text: string): DurationResult {
  if (text.length > MAX_CHARS)
    return refused(text, `longer than ${String(MAX_CHARS)} characters`);
  const negative = text.startsWith("-");
  const unsigned = text.replace(/^[+-]/u, "");
  if (unsigned === "0") return { kind: "ok", nanos: 0n };
  if (unsigned === "") return refused(text, "expected a number and a unit");

  let nanos = 0n;
  for (let at = 0; at < unsigned.length; at = PART.lastIndex) {
    PART.lastIndex = at;
    const {
      whole = "",
      fraction = "",
      unit = "",
    } = PART.exec(unsigned)?.groups ?? {};
    if (whole + fraction === "")
      return refused(text, "expected a number before each unit");
    if (unit === "")
      return refused(text, "missing unit, expected ns, us, ms, s, m or h");
    const unitNanos = UNIT_NANOS.get(unit);
    if (unitNanos === undefined) {
      return refused(
        text,
        `unknown unit ${quoted(unit)}, expected ns, us, ms, s, m or h`,
      );
    }
    nanos += BigInt(whole) * unitNanos + fractionNanos(fraction, unitNanos);
  }
  if (nanos > (negative ? LIMIT_NANOS : LIMIT_NANOS - 1n)) {
    return refused(text, "longer than the 292 years a duration can hold");
  }
  return { kind: "ok", nanos: negative ? -nanos : nanos };
}

/** In floating point and with the digits that fit 63 bits, because that is what Go does. */
function fractionNanos(digits: string, unitNanos: bigint): bigint {
  let value = 0n;
  let scale = 1;
  for (const digit of digits) {
    const next = value * 10n + BigInt(digit);
    if (value > (LIMIT_NANOS - 1n) / 10n || next > LIMIT_NANOS) break;
    value = next;
    scale *= 10;
  }
  return BigInt(Math.trunc(Number(value) * (Number(unitNanos) / scale)));
}

function refused(text: string, reason: string): DurationResult {
  return {
    kind: "error",
    message: `${quoted(text)} is not a Go duration such as 5s: ${reason}`,
  };
}
