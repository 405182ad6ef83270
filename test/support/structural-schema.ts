import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { RE2JS, RE2JSException } from "re2js";
import { celEnvironment, type CelRule, type StructuralSchema } from "./crd.js";

const ANYWHERE = ["description", "type"];
const VALIDATIONS = [
  ...["enum", "pattern", "minLength", "maxLength", "minimum", "maximum"],
  ...["required", "properties", "allOf", "anyOf", "oneOf", "not"],
];
const EXTENSIONS = [
  "x-kubernetes-validations",
  "x-kubernetes-preserve-unknown-fields",
  "x-kubernetes-int-or-string",
];
const TYPES = ["object", "string", "integer", "boolean"];
/** What the API server gives rules, as far as it is cheap: nothing here loops. */
const CEL_FUNCTIONS = ["has", "size", "contains", "startsWith", "endsWith"];
const MAX_TEXT_CHARS = 4096;
const MAX_POLICY_CHARS = 1024 * 1024;

/**
 * What is wrong with the schema of a version: against Kubernetes' rules for structural schemas and
 * CEL, which are stricter than JSON Schema's, and against this repository's: every field is
 * described, every text is bounded, and only `config` may hold anything.
 *
 * A list of what is allowed, not of what is forbidden: a keyword that is needed one day and that
 * Kubernetes takes is added here.
 */
export function structuralProblems(schema: StructuralSchema): string[] {
  return [...problemsAt(schema, ""), ...rootProblems(schema)];
}

function* rootProblems(schema: StructuralSchema): Iterable<string> {
  if (schema.type !== "object") yield ": the root must be an object";
  // Anything more is refused: the API server has a schema of its own for it, description included.
  const metadata = JSON.stringify(schema.properties?.["metadata"]);
  if (metadata !== '{"type":"object"}')
    yield "metadata: must be an object and say nothing else";
  for (const name of ["apiVersion", "kind"])
    if (schema.properties?.[name]?.type !== "string")
      yield `${name}: must be a string`;
}

function* problemsAt(schema: StructuralSchema, at: string): Iterable<string> {
  if (at === "metadata") return;
  yield* unknownKeywords(
    schema,
    [...ANYWHERE, ...VALIDATIONS, ...EXTENSIONS],
    at,
  );
  yield* typeProblems(schema, at);
  yield* textProblems(schema, at);
  yield* validationProblems(schema, schema, at);
  const environment = celEnvironment(schema);
  for (const rule of schema["x-kubernetes-validations"] ?? [])
    for (const problem of ruleProblems(rule, schema, environment))
      yield `${at}: ${problem}`;
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    yield* problemsAt(property, at === "" ? name : `${at}.${name}`);
}

function* typeProblems(schema: StructuralSchema, at: string): Iterable<string> {
  const { type, properties } = schema;
  const open = schema["x-kubernetes-preserve-unknown-fields"];
  const intOrString = schema["x-kubernetes-int-or-string"];
  if (intOrString === undefined) {
    if (!TYPES.includes(type ?? "")) yield `${at}: must have a type`;
  } else {
    if (type !== undefined)
      yield `${at}: must have no type beside int-or-string`;
    if (intOrString !== true || at !== "limits.memory")
      yield `${at}: must not be int-or-string`;
  }
  if ((type === "object") !== (properties !== undefined || open === true))
    yield `${at}: must be an object if it has properties, and have some if it is one`;
  if (open !== undefined && (open !== true || at !== "config"))
    yield `${at}: must not preserve unknown fields`;
}

function* textProblems(schema: StructuralSchema, at: string): Iterable<string> {
  const { description, enum: values, maxLength } = schema;
  if (typeof description !== "string" || !/^\S.*\.$/su.test(description))
    yield `${at}: must have a description in sentences`;
  const isText =
    schema.type === "string" || "x-kubernetes-int-or-string" in schema;
  if (!isText || values !== undefined) return;
  const most = at === "compositionPolicy" ? MAX_POLICY_CHARS : MAX_TEXT_CHARS;
  if (typeof maxLength !== "number" || maxLength > most)
    yield `${at}: must have a maxLength of at most ${String(most)}`;
}

/** Of a schema, and of those that `allOf` and the like nest in it: they may only validate values. */
function* validationProblems(
  schema: StructuralSchema,
  around: StructuralSchema,
  at: string,
): Iterable<string> {
  const { pattern, required = [] } = schema;
  if (pattern !== undefined && !isRe2(pattern))
    yield `${at}: must have a pattern that RE2 reads`;
  for (const name of required)
    if (!Object.hasOwn(around.properties ?? {}, name))
      yield `${at}: must not require ${name}, which does not exist`;
  for (const { keyword, nested } of nestedSchemas(schema)) {
    const where = `${at} ${keyword}`;
    yield* unknownKeywords(nested, VALIDATIONS, where);
    for (const name of Object.keys(nested.properties ?? {}))
      if (!Object.hasOwn(around.properties ?? {}, name))
        yield `${where}: must not have ${name}, which does not exist outside`;
    yield* validationProblems(nested, around, where);
  }
}

function* nestedSchemas(
  schema: StructuralSchema,
): Iterable<{ keyword: string; nested: StructuralSchema }> {
  for (const keyword of ["allOf", "anyOf", "oneOf", "not"]) {
    const value = (schema[keyword] ?? []) as
      StructuralSchema | StructuralSchema[];
    for (const nested of Array.isArray(value) ? value : [value])
      yield { keyword, nested };
  }
}

function* unknownKeywords(
  schema: StructuralSchema,
  known: readonly string[],
  at: string,
): Iterable<string> {
  for (const keyword of Object.keys(schema))
    if (!known.includes(keyword)) yield `${at}: must not have ${keyword}`;
}

function* ruleProblems(
  rule: CelRule,
  schema: StructuralSchema,
  environment: Environment,
): Iterable<string> {
  if (Object.keys(rule).sort().join() !== "message,rule")
    yield "a rule must have a message and nothing else";
  if (!/^\S.*$/u.test(rule.message)) yield "the message must be one line";
  const check = environment.check(rule.rule);
  if (!check.valid || check.type !== "bool") {
    yield "the rule must be a condition";
    return;
  }
  for (const node of nodesOf(environment.parse(rule.rule).ast)) {
    // The library looks for a field when it evaluates, the API server when it compiles.
    if (node.op === "." && schemaAt(node, schema) === undefined)
      yield `the rule must not use ${node.args[1]}, which does not exist`;
    if (node.op === "call" || node.op === "rcall") {
      const [name] = node.args;
      if (!CEL_FUNCTIONS.includes(name)) yield `the rule must not call ${name}`;
    }
  }
}

/** The schema of what `self.a.b` selects. */
function schemaAt(
  node: ASTNode,
  self: StructuralSchema,
): StructuralSchema | undefined {
  if (node.op === "id") return node.args === "self" ? self : undefined;
  if (node.op !== ".") return undefined;
  const [object, name] = node.args;
  const { properties = {} } = schemaAt(object, self) ?? {};
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

function* nodesOf(part: unknown): Iterable<ASTNode> {
  if (Array.isArray(part)) {
    for (const element of part) yield* nodesOf(element);
  } else if (typeof part === "object" && part !== null && "op" in part) {
    const node = part as ASTNode;
    yield node;
    yield* nodesOf(node.args);
  }
}

function isRe2(pattern: unknown): boolean {
  if (typeof pattern !== "string") return false;
  try {
    RE2JS.compile(pattern);
    return true;
  } catch (error) {
    if (error instanceof RE2JSException) return false;
    throw error;
  }
}
