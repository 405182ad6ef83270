/** A number as digits times a power of ten. */
interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

/**
 * Whether `value` is a whole number of times `divisor`, taking both as the decimal numbers they are
 * written as: 0.3 is a multiple of 0.1, though the doubles are not.
 */
export function isMultiple(value: number, divisor: number): boolean {
  const a = decimalOf(value);
  const b = decimalOf(divisor);
  const exponent = Math.min(a.exponent, b.exponent);
  return scaled(a, exponent) % scaled(b, exponent) === 0n;
}

function decimalOf(value: number): Decimal {
  const [mantissa = "", power = "0"] = String(value).split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  return {
    digits: BigInt(whole + fraction),
    exponent: Number(power) - fraction.length,
  };
}

function scaled({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}
