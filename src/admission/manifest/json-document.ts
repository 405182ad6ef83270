import { errorText, escaped, quoted } from "../../errors.js";
import { invalid } from "../fields.js";
import type { JsonValue } from "../json.js";
import { maxLevels, tooDeep } from "./levels.js";

/**
 * Reads JSON of at most 64 levels. An object that names a field twice is refused: two readers of
 * the same bytes would disagree about what the module requires.
 * @throws AdmissionError input-invalid
 */
export function parseJson(text: string): JsonValue {
  const value = parse(text);
  refuseHazards(text);
  return value;
}

function parse(text: string): JsonValue {
  try {
    // Deep nesting costs it no stack.
    return JSON.parse(text) as JsonValue;
  } catch (thrown) {
    throw invalid(`it is not JSON: ${escaped(errorText(thrown), 200)}`);
  }
}

/** Strings, numbers and the characters that give JSON its structure. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]|-?\d[\d.eE+-]*/gsu;

/** Depth, a name twice, numbers that no double holds. `text` is JSON, so its tokens are enough. */
function refuseHazards(text: string): void {
  /** Of every open object or list, the names it has so far. */
  const open: Set<string>[] = [];
  let lastString = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{" || token === "[") {
      open.push(new Set());
      if (open.length > maxLevels) throw tooDeep();
    } else if (token === "}" || token === "]") {
      open.pop();
    } else if (token === ":") {
      addName(open.at(-1), JSON.parse(lastString) as string);
    } else if (token.startsWith('"')) {
      lastString = token;
    } else if (!Number.isFinite(Number(token))) {
      throw invalid(`${escaped(token)} is out of the range of a number`);
    }
  }
}

function addName(names: Set<string> | undefined, name: string): void {
  if (names?.has(name) === true)
    throw invalid(`an object has the field ${quoted(name)} twice`);
  names?.add(name);
}
