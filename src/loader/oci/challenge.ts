/** One of the ways of signing in that a server offers with a 401. */
export interface Challenge {
  /** Lower case. */
  readonly scheme: string;
  /** By lower-case name; empty when the scheme came alone or with a token68. */
  readonly params: ReadonlyMap<string, string>;
}

const MAX_CHARS = 8 * 1024;
const MAX_CHALLENGES = 16;

const SEPARATORS = /[ \t,]*/y;
const SCHEME = /(?<scheme>[\w!#$%&'*+.^`|~-]+)(?=[ \t,]|$)/y;
const BLANKS = /[ \t]+(?=[^ \t,])/y;
const TOKEN_68 = /[A-Za-z0-9._~+/-]+=*(?=[ \t]*(?:,|$))/y;
const PARAM =
  /(?<name>[\w!#$%&'*+.^`|~-]+)[ \t]*=[ \t]*(?:(?<token>[\w!#$%&'*+.^`|~-]+)|"(?<quoted>(?:[^"\\]|\\.)*)")(?=[ \t]*(?:,|$))/y;

/**
 * Reads the values of `WWW-Authenticate` by RFC 9110, section 11.6.1. A value that breaks the
 * grammar, or names a parameter twice, counts for nothing, whatever is before the fault. More than
 * 8 KiB, or than 16 challenges: none.
 * @param headerValues one for each header line, in order
 */
export function parseChallenges(
  headerValues: readonly string[],
): readonly Challenge[] {
  const chars = headerValues.reduce((sum, { length }) => sum + length, 0);
  if (chars > MAX_CHARS) return [];
  const challenges = headerValues.flatMap((value) => parseValue(value) ?? []);
  return challenges.length > MAX_CHALLENGES ? [] : challenges;
}

function parseValue(text: string): Challenge[] | undefined {
  const challenges: Challenge[] = [];
  let params = new Map<string, string>();
  let at = 0;
  while (at < text.length) {
    take(SEPARATORS);
    if (at === text.length) break;
    // `name=` after a comma goes on with the challenge before it, all else begins another.
    if (challenges.length > 0 && takeParam()) continue;
    const scheme = take(SCHEME)?.["scheme"];
    if (scheme === undefined) return undefined;
    params = new Map();
    challenges.push({ scheme: scheme.toLowerCase(), params });
    const isAlone = take(BLANKS) === undefined;
    if (!isAlone && take(TOKEN_68) === undefined && !takeParam())
      return undefined;
  }
  return challenges;

  function takeParam(): boolean {
    const start = at;
    const groups = take(PARAM);
    const name = groups?.["name"]?.toLowerCase();
    if (name === undefined || params.has(name)) {
      at = start;
      return false;
    }
    const quoted = groups?.["quoted"]?.replace(/\\(.)/g, "$1");
    params.set(name, quoted ?? groups?.["token"] ?? "");
    return true;
  }

  /** The groups of a match right here, which is then behind us. */
  function take(pattern: RegExp): Record<string, string> | undefined {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) return undefined;
    at = pattern.lastIndex;
    return match.groups ?? {};
  }
}
