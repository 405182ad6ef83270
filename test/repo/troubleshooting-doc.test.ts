import { existsSync } from "node:fs";
import path from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

import { committedFiles, root, textOf } from "./committed-files.js";

/** A line that is logged: every level at which its message is. */
type Levels = Map<string, Set<string>>;

const DOC = "docs/troubleshooting.md";
/** All but `debug`, which one reads the source for. */
const LEVELS = ["info", "warn", "error"];
/** Those that pass a level's message on; calls of them count as calls of the logger. */
const FORWARDERS = new Map([["warnOnce", "warn"]]);
/** Where a message is a parameter, and not said. */
const FORWARDING_FILES = ["src/loader/oci/credentials.ts"];
/** All that these say at the start is a refusal. */
const REFUSING_FILES = [
  "src/cli/settings.ts",
  "src/function/bind.ts",
  "src/function/tls-files.ts",
  "src/function/tls-usable.ts",
  "src/loader/store/cache-dir.ts",
];
/** What refuses to start, but is not in src. */
const FOREIGN_FILES = [
  "node_modules/commander/lib/command.js",
  "native/wasmtime-node/src/lib.rs",
];

const sources = committedFiles()
  .filter((file) => /^src\/(?!gen\/).*\.ts$/.test(file))
  .map((file) => parse(file, textOf(file)));

describe("docs/troubleshooting.md log lines", () => {
  it("are read from calls of every shape", () => {
    const { logged, unread } = logCalls([
      parse(
        "a.ts",
        `logger.warn({}, "one");
        this.#logger
          .error({ a: { b: [] } }, odd ? "two" : "three");
        warnOnce({}, "four");
        logger.error({}, "one");
        logger.info({}, "one");
        logger.debug({}, "not this");
        logger.warn({}, \`five\`);
        logger.warn({}, message);
        warnOnce(error);`,
      ),
    ]);

    expect(asObject(logged)).toEqual({
      one: ["error", "info", "warn"],
      two: ["error"],
      three: ["error"],
      four: ["warn"],
      five: ["warn"],
    });
    expect(unread).toEqual(["a.ts"]);
  });

  it("are static, but where they are passed on", () => {
    expect(new Set(logCalls(sources).unread)).toEqual(
      new Set(FORWARDING_FILES),
    );
  });

  it("are those of src at warn and error level, and no other", () => {
    const logged = loggedAt(["warn", "error"]);

    expect(logged.size).toBeGreaterThan(20);
    expect(asObject(documentedLines())).toEqual(asObject(logged));
  });

  it("are, where all is well, those of src at info level, and no other", () => {
    const normal = rowsOf("What is normal").flatMap(([message = ""]) =>
      quotedIn(message),
    );

    expect(normal.length).toBeGreaterThan(10);
    expect(normal.sort()).toEqual([...loggedAt(["info"]).keys()].sort());
  });

  it("say what they mean where all is well", () => {
    for (const [message, meaning] of rowsOf("What is normal"))
      expect({ message, meaning }).toEqual({
        message,
        meaning: expect.stringMatching(/\w/) as string,
      });
  });

  it("say what they mean and what to do", () => {
    for (const [message, , meaning, whatToDo] of rowsOf("Log lines"))
      expect({ message, meaning, whatToDo }).toEqual({
        message,
        meaning: expect.stringMatching(/\w/) as string,
        whatToDo: expect.stringMatching(/\w/) as string,
      });
  });
});

describe("docs/troubleshooting.md start-up refusals", () => {
  it("are sentences that the program has", () => {
    const said = [...sources.map(sentencesOf), ...FOREIGN_FILES.map(textOf)]
      .flat()
      .join("\n");
    const sentences = rowsOf("Start-up refusals").flatMap(([sentence = ""]) =>
      quotedIn(sentence),
    );

    expect(sentences.length).toBeGreaterThan(20);
    expect(
      sentences.flatMap(piecesOf).filter((piece) => !said.includes(piece)),
    ).toEqual([]);
  });

  it.each(REFUSING_FILES)("has every sentence of %s", (file) => {
    const section = sectionOf("Start-up refusals");
    const pieces = sentencesOf(parse(file, textOf(file)))
      .flatMap(piecesOf)
      .filter((piece) => piece.split(" ").length > 2);

    expect(pieces.length).toBeGreaterThan(0);
    expect(pieces.filter((piece) => !section.includes(piece))).toEqual([]);
  });
});

describe("documents", () => {
  it("name headings as GitHub does", () => {
    const markdown =
      "# The `a.b` (c): d, [e](f.md)\n## Same\n```sh\n# not one\n```\n## Same\n";

    expect([...anchorsOf(markdown)]).toEqual([
      "the-ab-c-d-e",
      "same",
      "same-1",
    ]);
  });

  it("link to files and headings that there are", () => {
    const links = committedFiles()
      .filter((file) => file.endsWith(".md"))
      .flatMap((file) => linksOf(file));

    expect(links.length).toBeGreaterThan(100);
    expect(links.filter(isBroken).map(({ text }) => text)).toEqual([]);
  });
});

function parse(file: string, text: string): ts.SourceFile {
  return ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true);
}

/** What is logged at the levels; `unread` are the files of messages that are not static. */
function logCalls(files: readonly ts.SourceFile[]) {
  const logged: Levels = new Map();
  const unread: string[] = [];
  for (const file of files)
    visit(file, (node) => {
      if (!ts.isCallExpression(node)) return;
      const level = levelOf(node.expression);
      const message = node.arguments[1];
      if (level === undefined || message === undefined) return;
      const texts = textsOf(message);
      if (texts === null) unread.push(file.fileName);
      for (const text of texts ?? []) add(logged, text, level);
    });
  return { logged, unread };
}

/** What src logs at one of some levels, without the others of a message. */
function loggedAt(wanted: readonly string[]): Levels {
  const at: Levels = new Map();
  for (const [message, levels] of logCalls(sources).logged)
    for (const level of levels)
      if (wanted.includes(level)) add(at, message, level);
  return at;
}

/** By the name of what is called, whatever the logger itself is called. */
function levelOf(called: ts.Expression): string | undefined {
  if (ts.isIdentifier(called)) return FORWARDERS.get(called.text);
  if (!ts.isPropertyAccessExpression(called)) return undefined;
  return LEVELS.find((level) => level === called.name.text);
}

/** All that an expression may be; null = it is not static. */
function textsOf(expression: ts.Expression): string[] | null {
  if (ts.isStringLiteralLike(expression)) return [expression.text];
  if (!ts.isConditionalExpression(expression)) return null;
  const whenTrue = textsOf(expression.whenTrue);
  const whenFalse = textsOf(expression.whenFalse);
  return whenTrue === null || whenFalse === null
    ? null
    : [...whenTrue, ...whenFalse];
}

/** Every text in a file, with `…` for what varies. */
function sentencesOf(file: ts.SourceFile): string[] {
  const sentences: string[] = [];
  visit(file, (node) => {
    const sentence = sentenceOf(node);
    if (sentence !== null) sentences.push(sentence);
  });
  return sentences;
}

function sentenceOf(node: ts.Node): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return [node.head, ...node.templateSpans.map(({ literal }) => literal)]
      .map(({ text }) => text)
      .join("…");
  if (!ts.isBinaryExpression(node)) return null;
  if (node.operatorToken.kind !== ts.SyntaxKind.PlusToken) return null;
  return [node.left, node.right]
    .map((side) => sentenceOf(side) ?? "…")
    .join("");
}

function visit(node: ts.Node, see: (node: ts.Node) => void): void {
  see(node);
  node.forEachChild((child) => {
    visit(child, see);
  });
}

/** What does not vary in a sentence, without the marks around what does. */
function piecesOf(sentence: string): string[] {
  return sentence
    .split("…")
    .map((piece) => piece.replace(/^[\s`'":,/()]+|[\s`'":(]+$/g, ""))
    .filter((piece) => /\w/.test(piece));
}

function documentedLines(): Levels {
  const lines: Levels = new Map();
  for (const [message = "", levels = ""] of rowsOf("Log lines")) {
    const [text = ""] = quotedIn(message);
    expect(lines.has(text), `${text} twice`).toBe(false);
    for (const level of levels.split(", ")) add(lines, text, level);
  }
  return lines;
}

/** The rows of the tables of a section whose first cell is quoted, without their headings. */
function rowsOf(heading: string): string[][] {
  return sectionOf(heading)
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .map(([, ...cells]) => cells)
    .filter(([first = ""]) => first.startsWith("`") && first !== "`msg`");
}

function sectionOf(heading: string): string {
  const [, text = ""] = textOf(DOC).split(`\n## ${heading}\n`);
  return text.split("\n## ")[0] ?? "";
}

function quotedIn(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, text = ""]) => text);
}

function add(levels: Levels, message: string, level: string): void {
  levels.set(message, (levels.get(message) ?? new Set()).add(level));
}

function asObject(levels: Levels): Record<string, string[]> {
  return Object.fromEntries(
    [...levels].map(([message, of]) => [message, [...of].sort()]),
  );
}

interface Link {
  /** What is shown of a broken one. */
  readonly text: string;
  /** Relative to the root. */
  readonly target: string;
  /** Empty = the file itself. */
  readonly anchor: string;
}

function linksOf(file: string): Link[] {
  const links = withoutCode(textOf(file)).matchAll(
    /\]\((?!\w+:)(?<to>[^)#\s]*)(?:#(?<anchor>[^)\s]*))?\)/g,
  );
  return Array.from(links, ({ groups }) => {
    const { to = "", anchor = "" } = groups ?? {};
    const target = to === "" ? file : path.join(path.dirname(file), to);
    return { text: `${file}: ${to}#${anchor}`, target, anchor };
  });
}

function isBroken({ target, anchor }: Link): boolean {
  if (!existsSync(path.join(root, target))) return true;
  if (anchor === "" || !target.endsWith(".md")) return false;
  return !anchorsOf(textOf(target)).has(anchor);
}

function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  const headings = withoutCode(markdown).matchAll(/^#{1,6} (.+)$/gm);
  for (const [, heading = ""] of headings) {
    const name = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, "")
      .replaceAll(" ", "-");
    let anchor = name;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${name}-${n}`;
    anchors.add(anchor);
  }
  return anchors;
}

function withoutCode(markdown: string): string {
  return markdown.replace(/^```.*?^```$/gms, "");
}
