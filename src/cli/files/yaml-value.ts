import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
} from "yaml";

import { quoted } from "../../errors.js";
import type { FileError } from "./error.js";
import { isObject } from "./fields.js";
import { readPlainScalar, type ScalarValue } from "./scalar.js";

/** Levels of objects and lists a document may have: an Input's `config` may have 128 of its own. */
export const maxLevels = 256;

/** Values that the aliases of a file may repeat; all others take room in the file itself. */
const MAX_REPEATED_VALUES = 1_000_000;

/** What the aliases of a file have repeated so far. */
export interface AliasBudget {
  repeatedValues: number;
}

/** Makes the refusal of what is at an offset. */
export type Refuse = (offset: number, problem: string) => FileError;

/**
 * The value of a node, aliases and merge keys resolved. Of two equal keys none wins: that is
 * refused, whatever a lenient reader would make of it.
 * @param root nested no deeper than {@link maxLevels}
 * @throws what `refuse` makes
 */
export function readYamlNode(
  root: ParsedNode | null,
  budget: AliasBudget,
  refuse: Refuse,
): JsonValue {
  return read({ refuse, budget, anchors: new Map(), valueCount: 0 }, root);
}

interface Reading {
  readonly refuse: Refuse;
  readonly budget: AliasBudget;
  /** Of each anchor that has been read to its end, what it stands for now. */
  readonly anchors: Map<string, Anchored>;
  /** Values so far, repeated ones counted each time. */
  valueCount: number;
}

interface Anchored {
  readonly value: JsonValue;
  readonly valueCount: number;
}

function read(reading: Reading, node: ParsedNode | null): JsonValue {
  if (node === null) return null;
  if (isAlias(node)) {
    const anchored = reading.anchors.get(node.source);
    if (anchored === undefined) {
      throw reading.refuse(
        node.range[0],
        `the alias ${quoted(`*${node.source}`)} stands for nothing before it`,
      );
    }
    countRepeated(reading, anchored.valueCount, node.range[0]);
    return anchored.value;
  }
  const { anchor } = node;
  // An alias inside would stand for the whole.
  if (anchor !== undefined) reading.anchors.delete(anchor);
  const before = reading.valueCount;
  reading.valueCount += 1;
  const value = readContent(reading, node);
  if (anchor !== undefined) {
    const valueCount = reading.valueCount - before;
    reading.anchors.set(anchor, { value, valueCount });
  }
  return value;
}

function readContent(
  reading: Reading,
  node: Exclude<ParsedNode, Alias.Parsed>,
): JsonValue {
  if (isMap(node)) return readMap(reading, node);
  if (isSeq(node)) return node.items.map((item) => read(reading, item));
  return readScalar(reading, node);
}

/** A few bytes must not stand for gigabytes. */
function countRepeated(reading: Reading, count: number, offset: number): void {
  reading.valueCount += count;
  reading.budget.repeatedValues += count;
  if (reading.budget.repeatedValues <= MAX_REPEATED_VALUES) return;
  throw reading.refuse(
    offset,
    `the aliases repeat more than ${MAX_REPEATED_VALUES} values`,
  );
}

function readMap(reading: Reading, map: YAMLMap.Parsed): JsonObject {
  const object: JsonObject = {};
  const written = new Set<string>();
  for (const { key, value } of map.items) {
    if (isMergeKey(key)) {
      merge(reading, object, value ?? key);
      continue;
    }
    const name = readKey(reading, key);
    if (written.has(name))
      throw reading.refuse(key.range[0], `the key ${quoted(name)} comes twice`);
    written.add(name);
    object[name] = read(reading, value);
  }
  return object;
}

/** A key is text in JSON; Kubernetes makes text of booleans and whole numbers. */
function readKey(reading: Reading, node: ParsedNode): string {
  const [offset] = node.range;
  const key = read(reading, node);
  if (key === "__proto__")
    throw reading.refuse(offset, "the name __proto__ is not supported");
  if (typeof key === "string") return key;
  const isName =
    typeof key === "boolean" ||
    (typeof key === "number" && Number.isSafeInteger(key));
  if (isName) return String(key);
  throw reading.refuse(offset, "expected text as key: write it in quotes");
}

function isMergeKey(key: ParsedNode): boolean {
  if (!isScalar(key) || key.tag !== undefined) return false;
  return key.type === "PLAIN" && key.value === "<<";
}

/** As in Kubernetes, in the order of the text: a merge replaces what was before it. */
function merge(reading: Reading, target: JsonObject, node: ParsedNode): void {
  const value = read(reading, node);
  const sources = Array.isArray(value) ? value : [value];
  for (const source of sources.toReversed()) {
    if (!isObject(source)) {
      throw reading.refuse(
        node.range[0],
        "expected an object, or a list of objects, to merge",
      );
    }
    Object.assign(target, source);
  }
}

function readScalar(reading: Reading, node: Scalar.Parsed): JsonValue {
  const [offset] = node.range;
  const text = String(node.value);
  const value = typedValue(node, text);
  if (value === undefined) {
    throw reading.refuse(
      offset,
      `${quoted(text)} is no value of the tag ${quoted(node.tag ?? "")}`,
    );
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw reading.refuse(
      offset,
      `${quoted(text)} is no number that JSON can hold`,
    );
  }
  return value;
}

/** Undefined for a text that its explicit tag does not fit. */
function typedValue(
  { tag, type }: Scalar.Parsed,
  text: string,
): ScalarValue | undefined {
  if (tag === undefined) return type === "PLAIN" ? readPlainScalar(text) : text;
  const value = readPlainScalar(text);
  switch (tag) {
    case "tag:yaml.org,2002:null":
      return value === null ? value : undefined;
    case "tag:yaml.org,2002:bool":
      return typeof value === "boolean" ? value : undefined;
    case "tag:yaml.org,2002:int":
      return Number.isInteger(value) ? value : undefined;
    case "tag:yaml.org,2002:float":
      return typeof value === "number" ? value : undefined;
    default:
      return text;
  }
}
