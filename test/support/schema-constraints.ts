import type { CelRule, StructuralSchema } from "./crd.js";

const REMOVABLE = [
  ...["type", "x-kubernetes-int-or-string", "enum", "pattern", "allOf"],
  ...["minLength", "maxLength", "minimum", "maximum"],
];

/** One thing that a schema refuses by. */
export interface Constraint {
  readonly name: string;
  /** Takes it out of a copy of the schema it was found in. */
  readonly remove: (root: StructuralSchema) => void;
}

/** Everything a schema refuses by, but that objects are objects and hold nothing unknown. */
export function constraintsOf(
  schema: StructuralSchema,
  path: readonly string[] = [],
): Constraint[] {
  const at = path.join(".");
  const keywords = REMOVABLE.filter(
    (keyword) => keyword in schema && schema.properties === undefined,
  ).map((keyword) => ({
    name: `${at} ${keyword}`,
    remove: (root: StructuralSchema) => {
      Reflect.deleteProperty(schemaAt(root, path), keyword);
    },
  }));
  const elements = ["required", "x-kubernetes-validations"].flatMap((keyword) =>
    elementsOf(schema, keyword).map((element, index) => ({
      name: `${at} ${keyword} ${nameOf(element)}`,
      remove: (root: StructuralSchema) => {
        elementsOf(schemaAt(root, path), keyword).splice(index, 1);
      },
    })),
  );
  const below = Object.entries(schema.properties ?? {}).flatMap(
    ([name, property]) => constraintsOf(property, [...path, name]),
  );
  return [...keywords, ...elements, ...below];
}

function elementsOf(schema: StructuralSchema, keyword: string): unknown[] {
  return (schema[keyword] ?? []) as unknown[];
}

function nameOf(element: unknown): string {
  return typeof element === "string" ? element : (element as CelRule).rule;
}

function schemaAt(
  root: StructuralSchema,
  path: readonly string[],
): StructuralSchema {
  return path.reduce((schema, name) => schema.properties?.[name] ?? {}, root);
}
