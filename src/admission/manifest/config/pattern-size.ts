/** What a regular expression costs, told from its text. */
export interface PatternSize {
  /** At least the instructions of its program. */
  readonly instructions: number;
  /** Characters inside `[…]`. */
  readonly classChars: number;
}

/** Instructions of an open group: of its last atom, to which a repetition applies, and before it. */
interface Group {
  before: number;
  atom: number;
}

const TOKEN = /\\(?:[pPx]\{[^}]*\}|.)|\{(?<least>\d+)(?:,(?<most>\d*))?\}|./suy;
/** The beginning and the end of a program. */
const FRAME = 8;

/**
 * Bounds what compiling a regular expression of RE2 makes, without making it: a few characters,
 * such as `(\w{9}){99}`, become thousands of instructions. Null for `\Q` and for `[:` in a class,
 * which ECMA-262 does not have and with which one could hide characters from this. Of text that is
 * no regular expression the result means nothing.
 */
export function patternSize(pattern: string): PatternSize | null {
  const outer: Group[] = [];
  let group: Group = { before: FRAME, atom: 0 };
  let classChars = 0;
  let at = 0;
  while (at < pattern.length) {
    const { token, times } = tokenAt(pattern, at);
    const end = token === "[" ? classEnd(pattern, at) : at + token.length;
    const text = pattern.slice(at, end);
    at = end;
    if (token === "\\Q" || text.includes("[:", 1)) return null;
    if (token === "[") classChars += text.length;
    if (token === "(") {
      outer.push(group);
      group = { before: 0, atom: 0 };
    } else if (token === ")") {
      const inner = sizeOf(group);
      group = outer.pop() ?? { before: 0, atom: 0 };
      addAtom(group, inner + 3);
    } else if (token === "|") {
      addAtom(group, 2);
      addAtom(group, 0);
    } else if (times !== undefined) {
      group.atom = (group.atom + 1) * times + 2;
    } else {
      addAtom(group, 1);
    }
  }
  const instructions = outer.map(sizeOf).reduce((a, b) => a + b, sizeOf(group));
  return { instructions, classChars };
}

function tokenAt(
  pattern: string,
  at: number,
): { token: string; times: number | undefined } {
  TOKEN.lastIndex = at;
  const match = TOKEN.exec(pattern);
  const token = match?.[0] ?? pattern.slice(at, at + 1);
  const { least, most } = match?.groups ?? {};
  if (least !== undefined)
    return { token, times: Math.max(Number(least), Number(most ?? 0), 1) + 1 };
  return { token, times: /^[*+?]$/u.test(token) ? 1 : undefined };
}

/** The index after the `]` of the class that starts at an index. */
function classEnd(pattern: string, start: number): number {
  let at = start + 1;
  if (pattern[at] === "^") at += 1;
  // First of all, "]" is an ordinary character.
  if (pattern[at] === "]") at += 1;
  while (at < pattern.length && pattern[at] !== "]")
    at += pattern[at] === "\\" ? 2 : 1;
  return at + 1;
}

function addAtom(group: Group, instructions: number): void {
  group.before += group.atom;
  group.atom = instructions;
}

function sizeOf({ before, atom }: Group): number {
  return before + atom;
}
