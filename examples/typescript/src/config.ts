/** What a Composition may set under the Input's config field. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

export interface Config {
  greeting: string;
  labels: Record<string, string>;
}

/** Something the author of the Composition has to change. */
export class ConfigError extends Error {}

/** Reads input.config; what is absent or null keeps its default. */
export function parseConfig(input: JsonObject | undefined): Config {
  const config = object(input?.["config"], "config");
  const greeting = config["greeting"] ?? "hello";
  const labels: Record<string, string> = {};
  for (const [name, value] of Object.entries(
    object(config["labels"], "config.labels"),
  )) {
    labels[name] = string(value, `config.labels.${name}`);
  }
  labels["app.kubernetes.io/managed-by"] = "function-wasm";
  return { greeting: string(greeting, "config.greeting"), labels };
}

function object(value: JsonValue | undefined, path: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) {
    throw new ConfigError(`${path}: expected an object, got ${kindOf(value)}`);
  }
  return value;
}

function string(value: JsonValue, path: string): string {
  if (typeof value !== "string") {
    throw new ConfigError(`${path}: expected a string, got ${kindOf(value)}`);
  }
  return value;
}

function kindOf(value: JsonValue): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}
