import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

const VARIABLE = "SOURCE_DATE_EPOCH";
/** The last second of the year 9999: RFC 3339 has four digits for it. */
const MAX_SECONDS = 253_402_300_799;

/**
 * When something that is published was made: at SOURCE_DATE_EPOCH
 * (https://reproducible-builds.org/specs/source-date-epoch/), so that the same input makes the same
 * bytes, or now. An empty variable counts as unset.
 * @param nowMs from `Clock.nowMs`
 */
export function createdDate(
  env: Readonly<Record<string, string | undefined>>,
  nowMs: number,
): Parsed<Date> {
  const text = env[VARIABLE] ?? "";
  if (text === "") return { kind: "ok", value: new Date(nowMs) };
  const seconds = /^[0-9]{1,12}$/u.test(text) ? Number(text) : NaN;
  if (seconds <= MAX_SECONDS)
    return { kind: "ok", value: new Date(seconds * 1000) };
  return {
    kind: "error",
    message: `${VARIABLE}: expected whole seconds since 1970, from 0 to ${MAX_SECONDS}, got ${quoted(text)}`,
  };
}
