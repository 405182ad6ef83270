import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Document, parseAllDocuments, type Scalar, visit } from "yaml";

import { escaped, quoted } from "../../errors.js";
import { RenderError } from "./error.js";

/** One document of a YAML stream, and where messages say it is. */
export interface YamlDocument {
  /** For example `functions.yaml, line 12`. */
  readonly where: string;
  readonly value: JsonValue;
}

/**
 * Reads a YAML stream the way Kubernetes means it; empty documents are left out.
 *
 * Text that YAML 1.2 and Kubernetes' YAML 1.1 read differently is refused: to render `enabled: yes`
 * as text when the cluster would see `true` would be a lie.
 * @throws RenderError file-invalid
 */
export function readYaml(text: string, fileName: string): YamlDocument[] {
  const documents = parseAllDocuments(text, {
    merge: true,
    prettyErrors: false,
    strict: true,
    uniqueKeys: true,
  });
  if ("empty" in documents) return [];
  return documents
    .filter(
      (document) => document.contents !== null || document.errors.length > 0,
    )
    .map((document) => readDocument(document, text, fileName))
    .filter(({ value }) => value !== null);
}

/**
 * Writes one document, keys in order and without anchors. Every reader gets the same values out of
 * it, YAML 1.1 ones such as kubectl too, and a terminal shows no more than text.
 */
export function writeYaml(value: JsonObject): string {
  const document = new Document(value, {
    aliasDuplicateObjects: false,
    // Quotes what a YAML 1.1 reader would take for a boolean, a date or another number.
    compat: "yaml-1.1",
    sortMapEntries: true,
  });
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value === "string" && NEEDS_QUOTES.test(node.value)) {
        node.type = "QUOTE_DOUBLE";
      }
    },
  });
  return document
    .toString({ directives: false, lineWidth: 0 })
    .replace(INVISIBLE, escapeCharacter);
}

/** Control and format characters and line separators, but for the ordinary line break. */
const INVISIBLE = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
/** Merge keys, and text that is not printed as it is. */
const NEEDS_QUOTES = /^(?:<<|=)$|(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function escapeCharacter(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length > 4
    ? `\\U${hex.padStart(8, "0")}`
    : `\\u${hex.padStart(4, "0")}`;
}

function readDocument(
  document: Document.Parsed,
  text: string,
  fileName: string,
): YamlDocument {
  const at = (offset: number): string =>
    `${fileName}, line ${text.slice(0, offset).split("\n").length}`;
  const refuse = (offset: number, problem: string): never => {
    throw new RenderError("file-invalid", `${at(offset)}: ${problem}`);
  };

  const [problem] = [...document.errors, ...document.warnings];
  if (problem !== undefined) {
    refuse(problem.pos[0], escaped(problem.message, 300));
  }
  visit(document, {
    Scalar(_key, node) {
      const ambiguity = ambiguous(node);
      if (ambiguity !== null) refuse(node.range?.[0] ?? 0, ambiguity);
    },
  });

  let value: JsonValue;
  try {
    value = document.toJS() as JsonValue;
  } catch (thrown) {
    // Aliases that would expand without end.
    const reason = thrown instanceof Error ? thrown.message : String(thrown);
    return refuse(document.range[0], escaped(reason, 300));
  }
  return { where: at(document.contents?.range[0] ?? document.range[0]), value };
}

const BOOLEAN_IN_1_1 = /^(?:y|n|yes|no|on|off)$/i;
const NUMBER_IN_1_1 = /^[-+]?(?:0[0-7_]*[0-9_]|0b[01_]+|[1-9][0-9]*_[0-9_]*)$/;

/** Why a scalar means one thing here and another in the cluster, or cannot be JSON at all. */
function ambiguous(node: Scalar): string | null {
  if (node.value === "__proto__") return "the name __proto__ is not supported";
  if (typeof node.value === "number" && !Number.isFinite(node.value)) {
    return `${node.source ?? "this number"} is no number that JSON can hold`;
  }
  if (node.type !== "PLAIN") return null;
  const source = node.source ?? "";
  if (BOOLEAN_IN_1_1.test(source)) {
    return `${source} is a boolean to Kubernetes but text in YAML 1.2: write true, false or ${quoted(source)}`;
  }
  if (NUMBER_IN_1_1.test(source)) {
    return `${source} is one number to Kubernetes and another in YAML 1.2: write it in decimal, or in quotes`;
  }
  return null;
}
