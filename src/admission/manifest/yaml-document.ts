import {
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  Parser,
  type ParsedNode,
  type YAMLMap,
} from "yaml";

import { escaped, quoted } from "../../errors.js";
import type { AdmissionError } from "../error.js";
import { invalid } from "../fields.js";
import type { JsonObject, JsonValue } from "../json.js";
import { maxLevels, tooDeep } from "./levels.js";

/**
 * Reads the one document of a YAML 1.2 text as JSON: at most 64 levels, no aliases, no merge keys,
 * no tags but those of the core schema. Keys are texts, whatever they look like, and no key comes
 * twice.
 * @throws AdmissionError input-invalid, naming the line
 */
export function parseYaml(text: string): JsonValue {
  const [document, second] = compose(text);
  const at: Locator = (offset, problem) => {
    const line = text.slice(0, offset).split("\n").length;
    return invalid(`line ${String(line)}: ${problem}`);
  };
  if (second !== undefined)
    throw at(second.range[0], "expected one document, got another");
  if (document === undefined) throw invalid("it is empty");
  refuseProblems(document, at);
  return toJson(document.contents, at);
}

/** A `wasmfn.yaml` of 64 KiB in the usual style has half of them. */
const maxLexemes = 32_768;
const COLLECTIONS = new Set(["block-map", "block-seq", "flow-collection"]);

/** Makes the refusal of what is at an offset. */
type Locator = (offset: number, problem: string) => AdmissionError;

/** The documents, each composed when it is asked for. */
function compose(text: string): Iterable<Document.Parsed> {
  const composer = new Composer({
    merge: false,
    prettyErrors: false,
    // Else binaries, dates and sets come out as what JSON does not have.
    resolveKnownTags: false,
    schema: "core",
    strict: true,
    stringKeys: true,
    // Compares every key of a map with every other; toJson() looks them up.
    uniqueKeys: false,
    version: "1.2",
  });
  return composer.compose(tokens(text), true, text.length);
}

/**
 * What `new Parser().parse(text)` yields, cut off where it becomes too much for the composer: that
 * one calls itself for every level, and makes an Error of everything it does not like.
 */
function* tokens(text: string) {
  const parser = new Parser();
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexemes > maxLexemes)
      throw invalid(`it has more than ${String(maxLexemes)} YAML tokens`);
    yield* parser.next(lexeme);
    if (levelsOf(parser) > maxLevels) throw tooDeep();
  }
  yield* parser.end();
}

function levelsOf({ stack }: Parser): number {
  // Counting takes as long as there are levels.
  if (stack.length <= maxLevels) return 0;
  return stack.filter(({ type }) => COLLECTIONS.has(type)).length;
}

function refuseProblems(document: Document.Parsed, at: Locator): void {
  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined)
    throw at(problem.pos[0], escaped(problem.message, 200));
  const { explicit, version } = document.directives.yaml;
  if (explicit === true && version !== "1.2") {
    // It would change what `yes` and `0777` mean.
    throw at(0, `expected YAML 1.2, got a directive for ${quoted(version)}`);
  }
}

function toJson(node: ParsedNode | null, at: Locator): JsonValue {
  if (node === null) return null;
  if (isMap(node)) return objectOf(node, at);
  if (isSeq(node)) return node.items.map((item) => toJson(item, at));
  const [start] = node.range;
  if (isAlias(node)) throw at(start, "aliases are not supported");
  const { value } = node;
  if (typeof value === "number" && !Number.isFinite(value))
    throw at(start, `${escaped(node.source)} is out of the range of a number`);
  return value as JsonValue;
}

function objectOf(map: YAMLMap.Parsed, at: Locator): JsonObject {
  const object = Object.create(null) as Record<string, JsonValue>;
  for (const { key, value } of map.items) {
    const [start] = key.range;
    if (!isScalar(key) || typeof key.value !== "string")
      throw at(start, "expected a text as key");
    if (key.value === "<<" && key.type === "PLAIN")
      throw at(start, "merge keys are not supported");
    if (Object.hasOwn(object, key.value))
      throw at(start, `the key ${quoted(key.value)} comes twice`);
    object[key.value] = toJson(value, at);
  }
  return object;
}
