import { Environment } from "@marcbachmann/cel-js";
import { Ajv, type AnySchemaObject, type ErrorObject } from "ajv";
import { RE2JS } from "re2js";
import { parse } from "yaml";
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
} from "../../src/admission/json.js";

/** The part of a CustomResourceDefinition that decides about objects. */
export interface Crd {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: StructuralSchema };
    }[];
  };
}

/** A Kubernetes structural schema, as far as these tests look into it. */
export interface StructuralSchema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly required?: readonly string[];
  readonly "x-kubernetes-validations"?: readonly CelRule[];
  readonly [keyword: string]: unknown;
}

export interface CelRule {
  readonly rule: string;
  readonly message: string;
}

export type Verdict =
  | { readonly kind: "admitted" }
  | { readonly kind: "refused"; readonly reason: string };

/** Kubernetes matches patterns with RE2, whose syntax and `$` are not JavaScript's. */
const re2 = Object.assign((pattern: string) => RE2JS.compile(pattern), {
  code: "re2",
});

const CEL_TYPES: Readonly<Record<string, string>> = {
  string: "string",
  boolean: "bool",
  integer: "int",
};

/** Reads a CustomResourceDefinition from YAML; `structuralProblems` says whether it is a good one. */
export function readCrd(yaml: string): Crd {
  return parse(yaml) as Crd;
}

/**
 * Judges objects as an API server with strict field validation does: the version is chosen by
 * `apiVersion`; null in a known field counts as absent, because no field here is nullable; an
 * unknown field is refused (without strict validation it would be pruned); then the schema; and,
 * when that holds, every CEL rule, where a rule that fails to evaluate refuses. `metadata` is left
 * alone: it has the API server's own schema.
 */
export function createCrdJudge(crd: Crd): (object: JsonObject) => Verdict {
  const { group, names, versions } = crd.spec;
  const judges = new Map(
    versions.map(({ name, schema }) => [
      `${group}/${name}`,
      createSchemaJudge(schema.openAPIV3Schema),
    ]),
  );
  return (object) => {
    const { apiVersion, kind } = object;
    const judge =
      typeof apiVersion === "string" ? judges.get(apiVersion) : undefined;
    if (judge === undefined || kind !== names.kind)
      return refused("no such apiVersion and kind");
    return judge(object);
  };
}

/** An environment in which `self` has the type that a schema gives it. */
export function celEnvironment(schema: StructuralSchema): Environment {
  const type = celType(schema);
  return typeof type === "string"
    ? new Environment().registerVariable("self", type)
    : new Environment().registerVariable({ name: "self", schema: type });
}

function createSchemaJudge(
  schema: StructuralSchema,
): (object: JsonObject) => Verdict {
  const ajv = new Ajv({
    strictTypes: false,
    code: { regExp: re2 },
  });
  const matches = ajv.compile(jsonSchema(schema));
  const rules = compileRules(schema);
  return (object) => {
    const present = withoutNulls(object, schema);
    if (!matches(present)) return refused(schemaReason(matches.errors));
    for (const broken of rules(present)) return refused(broken);
    return { kind: "admitted" };
  };
}

/** Says in JSON Schema what the extensions say, and that objects are closed. */
function jsonSchema(schema: StructuralSchema): AnySchemaObject {
  const { properties, ...keywords } = schema;
  const standard = Object.entries(keywords).filter(
    ([keyword]) => !keyword.startsWith("x-kubernetes-"),
  );
  return {
    ...Object.fromEntries(standard),
    ...(schema["x-kubernetes-int-or-string"] === true && {
      type: ["integer", "string"],
    }),
    ...(properties !== undefined && {
      properties: mapValues(properties, jsonSchema),
      additionalProperties:
        schema["x-kubernetes-preserve-unknown-fields"] === true,
    }),
  };
}

function withoutNulls(value: JsonValue, schema: StructuralSchema): JsonValue {
  const { properties } = schema;
  if (!isJsonObject(value) || properties === undefined) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, field]) => {
      if (!Object.hasOwn(properties, name)) return [[name, field]];
      if (field === null) return [];
      return [[name, withoutNulls(field, properties[name] ?? {})]];
    }),
  );
}

/** The rules of a schema and those below it; yields the message of each that a value breaks. */
function compileRules(
  schema: StructuralSchema,
): (value: JsonValue) => Iterable<string> {
  const environment = celEnvironment(schema);
  const own = (schema["x-kubernetes-validations"] ?? []).map((rule) => ({
    holds: environment.parse(rule.rule),
    message: rule.message,
  }));
  const below = Object.entries(schema.properties ?? {}).map(
    ([name, property]) => ({ name, rules: compileRules(property) }),
  );
  return function* (value) {
    for (const { holds, message } of own)
      if (!isTrue(() => holds({ self: value }))) yield message;
    if (!isJsonObject(value)) return;
    for (const { name, rules } of below) {
      const field = Object.hasOwn(value, name) ? value[name] : undefined;
      if (field !== undefined) yield* rules(field);
    }
  };
}

function isTrue(evaluate: () => unknown): boolean {
  try {
    return evaluate() === true;
  } catch {
    return false;
  }
}

type CelType = string | { [field: string]: CelType };

function celType(schema: StructuralSchema): CelType {
  return schema.properties === undefined
    ? (CEL_TYPES[schema.type ?? ""] ?? "dyn")
    : mapValues(schema.properties, celType);
}

function mapValues<A, B>(
  object: Readonly<Record<string, A>>,
  map: (value: A) => B,
): Record<string, B> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, map(value)]),
  );
}

function schemaReason(errors: ErrorObject[] | null | undefined): string {
  const [error] = errors ?? [];
  return `${error?.instancePath ?? ""} ${error?.message ?? ""}`;
}

function refused(reason: string): Verdict {
  return { kind: "refused", reason };
}
