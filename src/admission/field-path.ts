import { quoted } from "../errors.js";
import type { Parsed } from "../ports.js";
import type { PathSegment } from "./composite.js";

const MAX_CHARS = 1024;
/** `spec` or `status` included. */
const MAX_SEGMENTS = 32;
const MAX_INDEX_DIGITS = 4;

const ROOT = /(?:spec|status)(?![A-Za-z0-9_-])/y;
const IDENTIFIER = /[A-Za-z_][A-Za-z0-9_-]*/y;
const INDEX = /(?:0|[1-9][0-9]*)(?=\])/y;
/** As JSON has it. */
// eslint-disable-next-line no-control-regex -- JSON allows them in escapes only
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/y;

/**
 * Reads the path of a field under `spec` or `status`: names joined by dots, `["…"]` around a name
 * in JSON's notation that has other characters, `[0]` for an element of a list. `spec["a.b"].c[0]`
 * is `["spec", "a.b", "c", 0]`. At most 1024 characters, 32 segments and indexes up to 9999.
 */
export function parseFieldPath(text: string): Parsed<readonly PathSegment[]> {
  if (text.length > MAX_CHARS) {
    return error(
      `the path is ${text.length} characters long, expected at most ${MAX_CHARS}`,
    );
  }
  const root = matchAt(ROOT, text, 0);
  if (root === undefined)
    return error(`expected spec.… or status.…, got ${quoted(text)}`);
  const path: PathSegment[] = [root];
  for (let at = root.length; at < text.length;) {
    const segment = readSegment(text, at);
    if (segment.kind === "error") return segment;
    path.push(segment.value.name);
    at = segment.value.end;
  }
  if (path.length === 1)
    return error(`expected a field of ${root}, got ${root} as a whole`);
  if (path.length > MAX_SEGMENTS) {
    return error(
      `the path has ${path.length} segments, expected at most ${MAX_SEGMENTS}`,
    );
  }
  return { kind: "ok", value: path };
}

/** The path as {@link parseFieldPath} reads it, on one line and fit for messages. */
export function formatFieldPath(path: readonly PathSegment[]): string {
  return path
    .map((segment, at) => {
      if (isIdentifier(segment)) return at === 0 ? segment : `.${segment}`;
      return `[${formatSegment(segment)}]`;
    })
    .join("");
}

/** One segment as messages name it: `a`, `"a.b"` or `3`. */
export function formatSegment(segment: PathSegment): string {
  return typeof segment === "number" || isIdentifier(segment)
    ? String(segment)
    : quoted(segment, MAX_CHARS);
}

interface Segment {
  readonly name: PathSegment;
  /** Where the next one begins. */
  readonly end: number;
}

function readSegment(text: string, at: number): Parsed<Segment> {
  const start = at + 1;
  if (text[at] === ".") return readName(text, start);
  if (text[at] !== "[") return expected('"." or "["', text, at);
  return text[start] === '"' ? readQuoted(text, start) : readIndex(text, start);
}

function readName(text: string, start: number): Parsed<Segment> {
  const name = matchAt(IDENTIFIER, text, start);
  if (name === undefined) {
    return expected(
      'a name of letters, digits, "_" and "-" (others are written ["…"])',
      text,
      start,
    );
  }
  return { kind: "ok", value: { name, end: start + name.length } };
}

function readQuoted(text: string, start: number): Parsed<Segment> {
  const json = matchAt(STRING, text, start);
  if (json === undefined)
    return expected("a name in double quotes, escaped as in JSON", text, start);
  const close = start + json.length;
  if (text[close] !== "]") return expected('"]"', text, close);
  const name = JSON.parse(json) as string;
  return { kind: "ok", value: { name, end: close + 1 } };
}

function readIndex(text: string, start: number): Parsed<Segment> {
  const digits = matchAt(INDEX, text, start);
  if (digits === undefined || digits.length > MAX_INDEX_DIGITS) {
    return expected(
      'a name in double quotes, or an index from 0 to 9999, and "]"',
      text,
      start,
    );
  }
  const end = start + digits.length + 1;
  return { kind: "ok", value: { name: Number(digits), end } };
}

function matchAt(
  pattern: RegExp,
  text: string,
  at: number,
): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

function isIdentifier(segment: PathSegment): segment is string {
  return (
    typeof segment === "string" && matchAt(IDENTIFIER, segment, 0) === segment
  );
}

function expected(
  what: string,
  text: string,
  at: number,
): { kind: "error"; message: string } {
  const found = at < text.length ? quoted(text.slice(at), 20) : "the end";
  return error(`expected ${what} at character ${at + 1}, got ${found}`);
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
