import type { DetailedError, SourceLabel } from "@cedar-policy/cedar-wasm";

const maxMessageChars = 600;

/**
 * What Cedar has against a policy, on one line: `line <n>: <message> (<label>); <help>`. Of several
 * errors the first in the text; Cedar hands those of one rule out in no particular order.
 * @param text the policy; null = the errors' places are not places in it
 * @param startByte where in `text` the part starts that the errors are about
 */
export function cedarMessage(
  errors: readonly DetailedError[],
  text: string | null,
  startByte = 0,
): string {
  const error = firstOf(errors);
  if (error === undefined) return "Cedar refuses it and does not say why";
  const place = placeOf(error);
  const label = place?.label ? ` (${place.label})` : "";
  const help = error.help === null ? "" : `; ${error.help}`;
  const line =
    place === undefined || text === null
      ? ""
      : `line ${lineAt(text, startByte + place.start)}: `;
  return oneLine(`${line}${error.message}${label}${help}`);
}

/** The line, from 1, of a place that is counted in UTF-8 bytes, as Cedar does. */
function lineAt(text: string, byteOffset: number): number {
  const before = Buffer.from(text).subarray(0, byteOffset);
  return before.reduce((line, byte) => (byte === 0x0a ? line + 1 : line), 1);
}

function firstOf(errors: readonly DetailedError[]): DetailedError | undefined {
  let first: DetailedError | undefined;
  // There may be a hundred thousand, so they are not sorted.
  for (const error of errors) {
    if (first === undefined || isBefore(error, first)) first = error;
  }
  return first;
}

function isBefore(a: DetailedError, b: DetailedError): boolean {
  const [placeA, placeB] = [startOf(a), startOf(b)];
  return placeA === placeB ? a.message < b.message : placeA < placeB;
}

function startOf(error: DetailedError): number {
  return placeOf(error)?.start ?? Infinity;
}

function placeOf(error: DetailedError): SourceLabel | undefined {
  return error.sourceLocations?.[0];
}

/** The message may quote the policy. Its quotes and backquotes are Cedar's own and stay. */
function oneLine(message: string): string {
  const head =
    message.length > maxMessageChars
      ? `${message.slice(0, maxMessageChars)}…`
      : message;
  return head
    .replace(/\s*[\r\n]+\s*/g, " ")
    .replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
      return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
    });
}
