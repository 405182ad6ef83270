import { escaped } from "../../errors.js";
import { readStart } from "../http/bounded-body.js";
import type { HttpResponse } from "../http/transport.js";

const MAX_BYTES = 4 * 1024;
const MAX_ERRORS = 2;
const MAX_CODE_CHARS = 60;
const MAX_MESSAGE_CHARS = 160;
/** What of a secret is looked for: an answer that repeats a long one may have been cut in it. */
const MAX_MARK_CHARS = 16;

/**
 * What the body of an error answer says, fit for a message: the codes and messages of its first two
 * errors, as the OCI distribution specification has them, or what Docker Hub's token server calls
 * details. Looks at 4 KiB; "" for everything else: it may be any server that answers.
 */
export function registryWords(body: Uint8Array): string {
  const text = decode(body.subarray(0, MAX_BYTES));
  return errorsIn(text);
}

/**
 * As {@link registryWords}; "" when the body repeats one of the secrets, or the beginning of one.
 */
export function wordsWithout(
  body: Uint8Array,
  secrets: readonly string[],
): string {
  const text = decode(body.subarray(0, MAX_BYTES));
  const spellings = [text, withoutEscapes(text)];
  return spellings.some((spelling) => repeatsOneOf(spelling, secrets))
    ? ""
    : registryWords(body);
}

/** As {@link wordsWithout}, of an answer, which is then done with. Never rejects. */
export async function readRegistryWords(
  response: HttpResponse,
  secrets: readonly string[],
): Promise<string> {
  try {
    return wordsWithout(await readStart(response, MAX_BYTES), secrets);
  } catch {
    // The answer's status has been told; what else it says is a courtesy.
    return "";
  }
}

/** A form has a secret in its own spelling, too. */
function repeatsOneOf(text: string, secrets: readonly string[]): boolean {
  return secrets.some(
    (secret) => repeats(text, secret) || repeats(text, inForm(secret)),
  );
}

function repeats(text: string, secret: string): boolean {
  return secret !== "" && text.includes(secret.slice(0, MAX_MARK_CHARS));
}

function inForm(secret: string): string {
  return new URLSearchParams([["", secret]]).toString().slice("=".length);
}

/** What a reader of JSON makes of its strings, as far as secrets go, which have no control characters. */
function withoutEscapes(text: string): string {
  return text.replace(
    /\\(?:u(?<hex>[0-9a-f]{4})|(?<character>.))/gisu,
    (_, hex: string | undefined, character: string | undefined) =>
      hex === undefined
        ? (character ?? "")
        : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** "" for what is no text. */
function decode(bytes: Uint8Array): string {
  try {
    // `stream` forgives a character cut in two at the end.
    const decoder = new TextDecoder("utf-8", { fatal: true });
    const text = decoder.decode(bytes, { stream: true });
    return text.includes("\0") ? "" : text;
  } catch {
    return "";
  }
}

function errorsIn(text: string): string {
  const body = parse(text);
  const errors = fieldOf(body, "errors");
  if (!Array.isArray(errors))
    return lineOf(fieldOf(body, "details"), MAX_MESSAGE_CHARS);
  return errors.slice(0, MAX_ERRORS).map(wordsOf).filter(Boolean).join("; ");
}

function wordsOf(error: unknown): string {
  const code = lineOf(fieldOf(error, "code"), MAX_CODE_CHARS);
  const message = lineOf(fieldOf(error, "message"), MAX_MESSAGE_CHARS);
  return [code, message].filter(Boolean).join(": ");
}

function lineOf(value: unknown, maxChars: number): string {
  return typeof value === "string" ? escaped(oneLine(value), maxChars) : "";
}

/** Without a full stop at the end, for it goes into a message of ours. */
function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim().replace(/\.$/u, "");
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null
    ? new Map<string, unknown>(Object.entries(value)).get(name)
    : undefined;
}
