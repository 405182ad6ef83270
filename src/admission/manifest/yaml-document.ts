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
  const at: Locator = (offset, problem) => {
    const line = text.slice(0, offset).split("\n").length;
    return invalid(`line ${String(line)}: ${problem}`);
  };
  const [document, second] = compose(text, at);
  if (second !== undefined)
    throw at(second.range[0], "expected one document, got another");
  if (document === undefined) throw invalid("it is empty");
  refuseProblems(document, at);
  return toJson(document.contents, at);
}

/** A `wasmfn.yaml` of 64 KiB has 10 000 to 21 000 of them, the more the shorter its lines are. */
const maxLexemes = 24_576;
const COLLECTIONS = new Set(["block-map", "block-seq", "flow-collection"]);

/** Makes the refusal of what is at an offset. */
type Locator = (offset: number, problem: string) => AdmissionError;

/** Where the composer says that a problem is. */
type Source = number | readonly [number, ...number[]] | { offset: number };

/** The documents, each composed when it is asked for. */
function compose(text: string, at: Locator): Iterable<Document.Parsed> {
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
  stopAtFirstProblem(composer, at);
  return composer.compose(tokens(text, at), true, text.length);
}

/**
 * The composer makes an Error of everything it does not like, errors and warnings, and goes on: tens
 * of thousands of them would hold up every other request for a third of a second.
 */
function stopAtFirstProblem(composer: Composer, at: Locator): void {
  let first: AdmissionError | undefined;
  const onError = (source: Source, _code: string, message: string) => {
    // What is thrown comes here again, from each level above.
    first ??= at(startOf(source), escaped(message, 200));
    throw first;
  };
  Object.assign(composer, { onError });
}

function startOf(source: Source): number {
  if (typeof source === "number") return source;
  return "offset" in source ? source.offset : source[0];
}

/**
 * What `new Parser().parse(text)` yields, cut off where the parser does not understand it, and where
 * it becomes too much for the composer, which calls itself for every level.
 */
function* tokens(text: string, at: Locator) {
  const parser = new Parser();
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    lexemes += 1;
    if (lexemes > maxLexemes)
      throw invalid(`it has more than ${String(maxLexemes)} YAML tokens`);
    for (const token of parser.next(lexeme)) {
      if (token.type === "error")
        throw at(token.offset, escaped(token.message, 200));
      yield token;
    }
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
  // None while stopAtFirstProblem() is understood by the composer: its hook is not documented.
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
