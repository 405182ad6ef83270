/**
 * The texts of JSON values that follow each other with nothing but blanks between them, as `jq -c`
 * writes them, each with the blanks before it; null when the text is none or one such value.
 */
export function splitJsonStream(text: string): string[] | null {
  if (!/^\s*\{/.test(text)) return null;
  const { values, rest } = splitByBrackets(text);
  const isStream =
    values.length > 1 && rest.trim() === "" && values.every(isJson);
  return isStream ? values : null;
}

/** Cuts after each bracket that closes an outermost one. */
function splitByBrackets(text: string): { values: string[]; rest: string } {
  const values: string[] = [];
  let start = 0;
  let depth = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (inString) {
      if (character === "\\") at += 1;
      else if (character === '"') inString = false;
    } else if (character === '"') {
      inString = true;
    } else if (character === "{" || character === "[") {
      depth += 1;
    } else if (character === "}" || character === "]") {
      depth -= 1;
      if (depth > 0) continue;
      values.push(text.slice(start, at + 1));
      start = at + 1;
    }
  }
  return { values, rest: text.slice(start) };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
