import { RE2JS, RE2JSException, RE2Set } from "re2js";

import { escaped, quoted } from "../../../errors.js";
import type { Parsed } from "../../../ports.js";
import { type PatternSize, patternSize } from "./pattern-size.js";

/** A regular expression whose work is bounded by its size and the text's length. */
export interface Pattern {
  readonly source: string;
  /** At least the instructions of its program: what a character can cost. */
  readonly size: number;
  /** Whether it matches anywhere in `text`. */
  test(text: string): boolean;
}

/** The regular expressions of one schema. */
export interface Patterns {
  /** Compiles `source`, or recalls it. */
  compile(source: string): Parsed<Pattern>;
}

/** Translated, it would be taken for the letter k. */
const NAMED_BACKREFERENCE = /(?<!\\)(?:\\\\)*\\k/u;
const maxInstructions = 2000;
/** Of all patterns together; compiling that much takes about 50 ms. */
const maxCost = 5000;
/** A Unicode class is hundreds of ranges. */
const unicodeClassCost = 12;
/** `(?i)` looks up every character of a range. */
const foldedClassCharCost = 150;
/** What a pattern may remember of the texts it has seen, so that the next one takes less time. */
const maxRememberedBytes = 64 * 1024;

/**
 * RE2 for JSON Schema: the syntax of ECMA-262 without what needs backtracking, which is lookaround
 * and backreferences.
 */
export function createPatterns(): Patterns {
  const known = new Map<string, Pattern>();
  let cost = 0;
  return {
    compile(source) {
      const same = known.get(source);
      if (same !== undefined) return { kind: "ok", value: same };
      if (NAMED_BACKREFERENCE.test(source))
        return refused(source, "backreferences are not supported");
      const text = RE2JS.translateRegExp(source);
      const size = patternSize(text);
      if (size === null)
        return refused(source, '"\\\\Q" and "[:" are not supported');
      cost += costOf(text, size);
      if (size.instructions > maxInstructions || cost > maxCost)
        return refused(source, "it is too large, or all of them together are");
      const compiled = compileText(text);
      if (compiled.kind === "error") return refused(source, compiled.message);
      const pattern: Pattern = {
        source,
        size: size.instructions,
        test: (input) => compiled.value.match(input).length > 0,
      };
      known.set(source, pattern);
      return { kind: "ok", value: pattern };
    },
  };
}

/** How much work compiling is, about 10 µs each. */
function costOf(text: string, size: PatternSize): number {
  const unicodeClasses = text.match(/\\p/giu)?.length ?? 0;
  const folded = /\(\?[A-Za-z]*i/u.test(text) ? size.classChars : 0;
  return (
    text.length +
    size.instructions +
    unicodeClasses * unicodeClassCost +
    folded * foldedClassCharCost
  );
}

/** A set of one: only sets can be told how much to remember. */
function compileText(text: string): Parsed<RE2Set> {
  try {
    const set = new RE2Set(RE2Set.UNANCHORED, 0, maxRememberedBytes);
    set.add(text);
    set.compile();
    return { kind: "ok", value: set };
  } catch (thrown) {
    if (!(thrown instanceof RE2JSException)) throw thrown;
    const reason = thrown.message.replace(/^error parsing regexp: /u, "");
    const hint = "RE2 syntax, without lookaround and backreferences";
    return { kind: "error", message: `${escaped(reason)} (${hint})` };
  }
}

function refused(source: string, reason: string): Parsed<Pattern> {
  return {
    kind: "error",
    message: `cannot compile the pattern ${quoted(source)}: ${reason}`,
  };
}
