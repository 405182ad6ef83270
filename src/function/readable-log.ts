import { inspect } from "node:util";

import { stdSerializers } from "pino";

import { escaped } from "../errors.js";
import type { LogFields } from "../ports.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * An entry of the log for people, with the newline that ends it:
 * `HH:MM:SS.mmm LEVEL message key=value …`, in UTC.
 *
 * A text is as it is, or JSON where that would be unclear; everything else is JSON. No value can make
 * another entry: there is no control character, and only the stack of an error has lines of its own,
 * below, indented and behind a bar.
 */
export function readableEntry(
  atMs: number,
  level: LogLevel,
  message: string,
  fields: LogFields,
): string {
  const time = new Date(atMs).toISOString().slice(11, 23);
  let line = `${time} ${level.toUpperCase().padEnd(5)} ${withoutControls(message)}`;
  let below = "";
  for (const [key, value] of Object.entries(fields)) {
    if (!(value instanceof Error)) {
      line += fieldText(key, value);
      continue;
    }
    const { stack, ...rest } = serializedError(value);
    for (const [name, part] of Object.entries(rest))
      line += fieldText(`${key}.${name}`, part);
    if (typeof stack === "string" && stack !== "") below += indented(stack);
  }
  return `${line}\n${below}`;
}

/** As it is in the JSON log: with the messages and stacks of its causes, and all else it has. */
function serializedError(error: Error): Readonly<Record<string, unknown>> {
  return { ...stdSerializers.err(error) };
}

/** Empty where JSON would leave the field out. */
function fieldText(key: string, value: unknown): string {
  const text = valueText(value);
  if (text === undefined) return "";
  return ` ${/^[\w.-]+$/.test(key) ? key : quoted(key)}=${text}`;
}

function valueText(value: unknown): string | undefined {
  if (typeof value === "string") return plainOrQuoted(value);
  const json = jsonOf(value);
  return json === undefined ? undefined : withoutControls(json);
}

/** Undefined for a function or a symbol, too. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // A circle, a bigint, or deeper than the stack: a log takes everything.
    return JSON.stringify(inspect(value));
  }
}

/** No blank, quote, backslash, or character that one does not see. */
const plain = /^[^\s"\\\p{C}]+$/u;

/** What is not text, when read as JSON. */
const literal = /^(?:-?\d[\d.eE+-]*|true|false|null|\[.*\]|\{.*\})$/;

function plainOrQuoted(text: string): string {
  return plain.test(text) && !literal.test(text) ? text : quoted(text);
}

function quoted(text: string): string {
  return withoutControls(JSON.stringify(text));
}

/** With escapes for what one does not see, as in JSON, which has them for some of it only. */
function withoutControls(text: string): string {
  return text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    escaped(character),
  );
}

function indented(stack: string): string {
  return stack
    .split("\n")
    .map((line) => `    | ${withoutControls(line.trim())}\n`)
    .join("");
}
