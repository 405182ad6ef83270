import type { Parsed } from "../../ports.js";
import type { IsPlainHttp } from "../registry-scheme.js";
import {
  basicCredential,
  decodeUtf8,
  parseBasicAuth,
  tokenCredential,
} from "./basic-auth.js";
import type { Credential } from "./credential.js";
import {
  type DockerConfigKey,
  parseDockerConfigKey,
} from "./docker-config-key.js";

/** What a Docker config says about credentials. Keys that name no registry are left out. */
export interface DockerConfig {
  /** Those without a secret come last, so that another one for the same place goes before. */
  readonly auths: readonly AuthEntry[];
  readonly credHelpers: readonly HelperEntry[];
  /** The helper for registries that none of `credHelpers` is for; null = none. */
  readonly credsStore: string | null;
}

/** An entry of `auths`: it stands for its own pulls only, whatever is wrong with it. */
export type AuthEntry = { readonly key: DockerConfigKey } & (
  | { readonly kind: "credential"; readonly credential: Credential }
  /** It has no secret: anonymous, or the store of credentials has it. */
  | { readonly kind: "empty" }
  /** `problem` repeats nothing of the entry. */
  | { readonly kind: "problem"; readonly problem: string }
);

/** An entry of `credHelpers`. */
export interface HelperEntry {
  readonly key: DockerConfigKey;
  /** "" = no helper for this registry, not even the store. */
  readonly name: Parsed<string>;
}

/** The largest Docker config, in bytes. */
export const MAX_CONFIG_BYTES = 1024 * 1024;
const MAX_ENTRIES = 1024;

/**
 * Reads a `config.json`, at most 1 MiB and 1024 entries. An entry that cannot be used breaks no
 * other. No message repeats anything of the text.
 */
export function parseDockerConfig(
  text: Uint8Array,
  isPlainHttp: IsPlainHttp,
): Parsed<DockerConfig> {
  const parsed = parseObject(text);
  if (parsed.kind === "error") return parsed;
  const { auths, credHelpers, credsStore } = parsed.value;
  const authsByKey = mapOf("auths", auths);
  if (authsByKey.kind === "error") return authsByKey;
  const helpersByKey = mapOf("credHelpers", credHelpers);
  if (helpersByKey.kind === "error") return helpersByKey;
  const store = credsStore ?? "";
  if (typeof store !== "string") return error("credsStore is no string");
  return ok({
    auths: authEntries(authsByKey.value, isPlainHttp),
    credHelpers: helperEntries(helpersByKey.value, isPlainHttp),
    credsStore: store === "" ? null : store,
  });
}

/** Reads a `.dockercfg`, which is the `auths` of a `config.json` alone; the same bounds. */
export function parseLegacyDockerConfig(
  text: Uint8Array,
  isPlainHttp: IsPlainHttp,
): Parsed<DockerConfig> {
  const parsed = parseObject(text);
  if (parsed.kind === "error") return parsed;
  const authsByKey = mapOf("the file", parsed.value);
  if (authsByKey.kind === "error") return authsByKey;
  const auths = authEntries(authsByKey.value, isPlainHttp);
  return ok({ auths, credHelpers: [], credsStore: null });
}

/** Whether the entry says that its registry has no helper. */
export function isNoHelper({ name }: HelperEntry): boolean {
  return name.kind === "ok" && name.value === "";
}

type Fields = Readonly<Record<string, unknown>>;

function parseObject(text: Uint8Array): Parsed<Fields> {
  if (text.length > MAX_CONFIG_BYTES) {
    return error(
      `it has ${text.length} bytes, expected at most ${MAX_CONFIG_BYTES}`,
    );
  }
  const json = decodeUtf8(text);
  if (json === null) return error("it is not UTF-8");
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    // What it throws quotes the text.
    return error("it is not JSON");
  }
  return isFields(value) ? ok(value) : error("expected a JSON object");
}

/** Go's reader, whose format this is, takes null for a field that is not there. */
function mapOf(name: string, value: unknown): Parsed<Fields> {
  const fields = value ?? {};
  if (!isFields(fields)) return error(`${name}: expected a JSON object`);
  const count = Object.keys(fields).length;
  return count <= MAX_ENTRIES
    ? ok(fields)
    : error(`${name}: ${count} entries, expected at most ${MAX_ENTRIES}`);
}

function authEntries(auths: Fields, isPlainHttp: IsPlainHttp): AuthEntry[] {
  const entries = Object.entries(auths).flatMap(([text, value]) => {
    const key = parseDockerConfigKey(text, isPlainHttp);
    return key === null ? [] : [authEntry(key, value)];
  });
  return entries.toSorted(
    (a, b) => Number(a.kind === "empty") - Number(b.kind === "empty"),
  );
}

function authEntry(key: DockerConfigKey, value: unknown): AuthEntry {
  const parsed = parseAuth(value);
  if (parsed.kind === "error")
    return { key, kind: "problem", problem: parsed.message };
  return parsed.value === null
    ? { key, kind: "empty" }
    : { key, kind: "credential", credential: parsed.value };
}

/**
 * A token wins over `auth`, whose user is then only a placeholder such as `<token>`; `auth` wins
 * over the fields it is made of.
 */
function parseAuth(value: unknown): Parsed<Credential | null> {
  const fields = value ?? {};
  if (!isFields(fields)) return error("expected a JSON object");
  const texts = new Map<string, string>();
  for (const name of SECRET_FIELDS) {
    const text = fields[name] ?? "";
    if (typeof text !== "string") return error(`${name} is no string`);
    texts.set(name, text);
  }
  const textOf = (name: SecretField): string => texts.get(name) ?? "";
  if (textOf("registrytoken") !== "")
    return tokenCredential("registry-token", textOf("registrytoken"));
  if (textOf("identitytoken") !== "")
    return tokenCredential("identity-token", textOf("identitytoken"));
  if (textOf("auth") !== "") return parseBasicAuth(textOf("auth"));
  const username = textOf("username");
  const password = textOf("password");
  if (username === "" && password === "") return ok(null);
  if (username === "") return error("it has a password, but no username");
  if (password === "") return error("it has a username, but no password");
  return basicCredential(username, password);
}

const SECRET_FIELDS = [
  "auth",
  "username",
  "password",
  "identitytoken",
  "registrytoken",
] as const;
type SecretField = (typeof SECRET_FIELDS)[number];

function helperEntries(
  helpers: Fields,
  isPlainHttp: IsPlainHttp,
): HelperEntry[] {
  return Object.entries(helpers).flatMap(([text, value]) => {
    const key = parseDockerConfigKey(text, isPlainHttp);
    if (key === null) return [];
    const name =
      typeof value === "string"
        ? ok(value)
        : error(`the helper for ${key.text} is no string`);
    return [{ key, name }];
  });
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function ok<T>(value: T): { kind: "ok"; value: T } {
  return { kind: "ok", value };
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
