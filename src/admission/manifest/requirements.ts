import {
  describe,
  fieldPath,
  invalidAt,
  objectField,
  readFields,
} from "../fields.js";
import type { JsonValue } from "../json.js";
import { readEgressRule } from "./egress-rule.js";
import type { EgressRule, EnvBinding, Requirements } from "./manifest.js";
import {
  lineOf,
  listOf,
  maxNameChars,
  refuseTwice,
  required,
} from "./values.js";

const MAX_ITEMS = 64;
const MAX_VARIABLE_CHARS = 128;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/u;

/**
 * Reads a manifest's `requires`. What is unknown is refused in every form: a requirement that is
 * not understood cannot be judged.
 * @throws AdmissionError input-invalid, field-unknown
 */
export function readRequirements(value: JsonValue | undefined): Requirements {
  const requires = readFields(
    objectField(value, "requires") ?? {},
    "requires",
    {
      supported: ["egress", "filesystem", "env", "credentials"],
    },
  );
  return {
    egress: readEgress(requires.get("egress")),
    privateTmp: readPrivateTmp(requires.get("filesystem")),
    env: readEnv(requires.get("env")),
    credentials: readCredentials(requires.get("credentials")),
  };
}

function readEgress(value: JsonValue | undefined): readonly EgressRule[] {
  const path = "requires.egress";
  const egress = readFields(objectField(value, path) ?? {}, path, {
    supported: ["http"],
  });
  return listOf(egress.get("http"), `${path}.http`, MAX_ITEMS).map(
    (rule, index) => readEgressRule(rule, `${path}.http[${String(index)}]`),
  );
}

function readPrivateTmp(value: JsonValue | undefined): boolean {
  const path = "requires.filesystem";
  const filesystem = readFields(objectField(value, path) ?? {}, path, {
    supported: ["privateTmp"],
  });
  const privateTmp = filesystem.get("privateTmp") ?? false;
  if (typeof privateTmp === "boolean") return privateTmp;
  throw invalidAt(
    `${path}.privateTmp`,
    `expected true or false, got ${describe(privateTmp)}`,
  );
}

function readEnv(value: JsonValue | undefined): readonly EnvBinding[] {
  const pathOf = (index: number) => `requires.env[${String(index)}]`;
  const bindings = listOf(value, "requires.env", MAX_ITEMS).map(
    (binding, index) => readBinding(binding, pathOf(index)),
  );
  refuseTwice(
    bindings.map(({ name }) => name),
    (index) => `${pathOf(index)}.name`,
  );
  return bindings;
}

function readBinding(value: JsonValue, path: string): EnvBinding {
  const binding = readFields(objectField(value, path) ?? {}, path, {
    supported: ["name", "fromCredential"],
  });
  const from = fieldPath(path, "fromCredential");
  const source = readFields(
    objectField(
      required(binding.get("fromCredential"), path, "fromCredential"),
      from,
    ) ?? {},
    from,
    { supported: ["name", "key"] },
  );
  return {
    name: readVariable(required(binding.get("name"), path, "name"), path),
    credential: readName(source.get("name"), from, "name"),
    key: readName(source.get("key"), from, "key"),
  };
}

function readVariable(value: JsonValue, path: string): string {
  const at = fieldPath(path, "name");
  const name = lineOf(value, at, MAX_VARIABLE_CHARS);
  if (VARIABLE.test(name)) return name;
  throw invalidAt(
    at,
    `expected a letter or "_" and then letters, digits or "_", got ${describe(name)}`,
  );
}

function readName(
  value: JsonValue | undefined,
  path: string,
  name: string,
): string {
  const at = fieldPath(path, name);
  return lineOf(required(value, path, name), at, maxNameChars);
}

function readCredentials(value: JsonValue | undefined): readonly string[] {
  const pathOf = (index: number) => `requires.credentials[${String(index)}]`;
  const names = listOf(value, "requires.credentials", MAX_ITEMS).map(
    (name, index) => lineOf(name, pathOf(index), maxNameChars),
  );
  refuseTwice(names, pathOf);
  return names;
}
