/** What a scalar of YAML stands for; a number may be infinite or none at all. */
export type ScalarValue = boolean | number | string | null;

/**
 * The value of unquoted text, as the YAML library of Kubernetes reads it: YAML 1.1 where that has
 * booleans and octal numbers, but no sexagesimal numbers, and dates are text.
 *
 * Whole numbers beyond 2^53 are rounded, as they are on their way through a
 * `google.protobuf.Struct`.
 */
export function readPlainScalar(text: string): ScalarValue {
  const constant = CONSTANTS.get(text);
  if (constant !== undefined) return constant;
  if (!NUMBER_START.test(text) || STRAY_UNDERSCORE.test(text)) return text;
  const digits = text.replaceAll("_", "");
  const number = readInteger(digits) ?? readDecimal(digits);
  return number ?? text;
}

const TRUE = "y Y yes Yes YES true True TRUE on On ON".split(" ");
const FALSE = "n N no No NO false False FALSE off Off OFF".split(" ");
const NULL = ["", "~", "null", "Null", "NULL"];
const NOT_A_NUMBER = [".nan", ".NaN", ".NAN"];
const INFINITY = [".inf", ".Inf", ".INF"];

const CONSTANTS: ReadonlyMap<string, ScalarValue> = new Map([
  ...each(TRUE, true),
  ...each(FALSE, false),
  ...each(NULL, null),
  ...each(NOT_A_NUMBER, NaN),
  ...INFINITY.flatMap((text) => [
    ...each([text, `+${text}`], Infinity),
    ...each([`-${text}`], -Infinity),
  ]),
]);

const NUMBER_START = /^[-+.0-9]/;
/** Elsewhere an underscore counts for nothing, wherever it is. */
const STRAY_UNDERSCORE = /^\.(?:.*[^0-9])?_|^\..*_(?:[^0-9]|$)/;
/** No more digits than 64 bits have. */
const INTEGER =
  /^(?<sign>[-+]?)(?:0x0*(?<hex>[0-9a-f]{1,16})|0b0*(?<binary>[01]{1,64})|0o?0*(?<octal>[0-7]{1,22})|(?<decimal>0|[1-9][0-9]{0,19}))$/i;
const DECIMAL = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:e[-+]?[0-9]+)?$/i;
const MAX_UNSIGNED = 2n ** 64n - 1n;
const MIN_SIGNED = -(2n ** 63n);

/** A whole number in one of Go's notations, of 64 bits at most. */
function readInteger(text: string): number | null {
  const parts = INTEGER.exec(text)?.groups;
  if (parts === undefined) return null;
  const { sign, hex, binary, octal, decimal } = parts;
  const magnitude = BigInt(
    hex !== undefined
      ? `0x${hex}`
      : binary !== undefined
        ? `0b${binary}`
        : octal !== undefined
          ? `0o${octal}`
          : (decimal ?? "0"),
  );
  const value = sign === "-" ? -magnitude : magnitude;
  const max = sign === "" ? MAX_UNSIGNED : -MIN_SIGNED - 1n;
  return value >= MIN_SIGNED && value <= max ? Number(value) : null;
}

/** What is no integer to Go may still be a number in decimal: `08`, or one that is too large. */
function readDecimal(text: string): number | null {
  if (!DECIMAL.test(text)) return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}

function each(
  texts: readonly string[],
  value: ScalarValue,
): [string, ScalarValue][] {
  return texts.map((text) => [text, value]);
}
