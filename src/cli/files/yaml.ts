import type { JsonValue } from "@bufbuild/protobuf";
import { Composer, type Document, Lexer, LineCounter, Parser } from "yaml";

import { escaped, quoted } from "../../errors.js";
import { FileError } from "./error.js";
import { splitJsonStream } from "./json-stream.js";
import { type AliasBudget, maxLevels, readYamlNode } from "./yaml-value.js";

/** One document of a YAML stream, and where messages say it is. */
export interface YamlDocument {
  /** For example `functions.yaml, line 12`. */
  readonly where: string;
  readonly value: JsonValue;
}

/**
 * Reads a YAML stream the way Kubernetes does, or a stream of JSON values, which may follow each
 * other as they are; empty documents are left out. Whatever the text holds, this takes a bounded
 * amount of stack and memory.
 * @param fileName what messages call it
 * @throws FileError file-invalid, naming the line
 */
export function readYaml(text: string, fileName: string): YamlDocument[] {
  return [...readStream(text, fileName)];
}

/** Kubernetes drops a byte order mark before each document; the decoder has dropped the first. */
const INNER_MARK = /^(?<separator>---.*\r?\n)\uFEFF/gmu;
/** Kubernetes refuses these too. */
const CONTROL_CHARACTER = /(?![\t\n\r\u0085])\p{Cc}/u;
/** Lexemes of one document: a memory bound, about 20,000 pipeline steps. */
const MAX_LEXEMES = 2_000_000;

function* readStream(text: string, fileName: string): Generator<YamlDocument> {
  const source = text.replace(INNER_MARK, "$<separator>");
  const budget: AliasBudget = { repeatedValues: 0 };
  let firstLine = 1;
  for (const part of splitJsonStream(source) ?? [source]) {
    yield* readPart(part, budget, fileName, firstLine);
    firstLine += part.split("\n").length - 1;
  }
}

function* readPart(
  source: string,
  budget: AliasBudget,
  fileName: string,
  firstLine: number,
): Generator<YamlDocument> {
  const lines = new LineCounter();
  lines.addNewLine(0);
  const at = (line: number) =>
    `${escaped(fileName, 4096)}, line ${firstLine + line - 1}`;
  const refuse = (offset: number, problem: string) =>
    refusal(at(lines.linePos(offset).line), problem);
  const refuseHere = (problem: string) =>
    refusal(at(lines.lineStarts.length), problem);

  const control = CONTROL_CHARACTER.exec(source);
  if (control !== null) {
    const line = source.slice(0, control.index).split("\n").length;
    throw refusal(at(line), `the control character ${quoted(control[0])}`);
  }
  for (const document of compose(source, lines, refuseHere)) {
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined)
      throw refuse(problem.pos[0], escaped(problem.message, 300));
    const value = readYamlNode(document.contents, budget, refuse);
    if (value === null) continue;
    const start = document.contents?.range[0] ?? 0;
    yield { where: at(lines.linePos(start).line), value };
  }
}

function compose(
  source: string,
  lines: LineCounter,
  refuseHere: (problem: string) => FileError,
): Iterable<Document.Parsed> {
  const composer = new Composer({
    // What plain text means is decided in scalar.ts.
    schema: "failsafe",
    customTags: (tags) => [...tags, ...SCALAR_TAGS],
    merge: false,
    prettyErrors: false,
    resolveKnownTags: false,
    strict: true,
    // Compares every key of a map with every other; readYamlNode looks them up.
    uniqueKeys: false,
  });
  return composer.compose(
    tokens(source, lines, refuseHere),
    true,
    source.length,
  );
}

const SCALAR_TAGS = ["bool", "float", "int", "null"].map((name) => ({
  tag: `tag:yaml.org,2002:${name}`,
  resolve: (text: string) => text,
}));

/**
 * What `new Parser().parse(source)` yields, ended by nesting that is too deep: the composer calls
 * itself for every level, the parser does not.
 */
function* tokens(
  source: string,
  lines: LineCounter,
  refuseHere: (problem: string) => FileError,
) {
  const parser = new Parser(lines.addNewLine);
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(source)) {
    for (const token of parser.next(lexeme)) {
      if (token.type === "document") lexemes = 0;
      yield token;
    }
    lexemes += 1;
    if (lexemes > MAX_LEXEMES)
      throw refuseHere(`the document has more than ${MAX_LEXEMES} tokens`);
    // The document is on the stack too, and perhaps the scalar it is in.
    if (parser.stack.length > maxLevels + 2)
      throw refuseHere(`it nests deeper than ${maxLevels} levels`);
  }
  yield* parser.end();
}

function refusal(where: string, problem: string): FileError {
  return new FileError("file-invalid", `${where}: ${problem}`);
}
