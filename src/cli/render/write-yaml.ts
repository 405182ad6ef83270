import type { JsonObject } from "@bufbuild/protobuf";
import { Document, visit } from "yaml";

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
