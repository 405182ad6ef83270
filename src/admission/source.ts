import { quoted } from "../errors.js";
import type { ModuleSource, Parsed, SourceParsers } from "../ports.js";
import { AdmissionError } from "./error.js";
import {
  describeWithoutText,
  fieldPath,
  type Fields,
  invalid,
  invalidAt,
  objectField,
  ownField,
  readFields,
  textField,
} from "./fields.js";
import type { JsonValue } from "./json.js";

/** What the operator set, as far as it bounds sources. */
export interface SourceCeilings {
  /** Whether --module-dir is set, without which Path sources are refused. */
  readonly moduleDirSet: boolean;
  /** Whether --allow-unpinned-tags is set. */
  readonly allowUnpinnedTags: boolean;
}

/** Who wrote a source; in an Input it lies in `module`, in the XR wherever `module.from` says. */
export type Author = "input" | "xr";

/** An OCI source as it is written: its shape is checked, what the texts say is not. */
export interface OciTexts {
  readonly ref: string;
  readonly expectedDigest: string | null;
  readonly credentials: string | null;
}

/** An HTTP source as it is written. */
export interface HttpTexts {
  readonly url: string;
  readonly digest: string;
  readonly manifest: { readonly url: string; readonly digest: string } | null;
}

const EXPECTED_REF = "registry/repository[:tag]@sha256:<64 hex digits>";
/** More than any reference that parses. */
const MAX_SHOWN_CHARS = 1024;
/** As Kubernetes names, and with capitals and underscores: Crossplane asks for no form at all. */
const CREDENTIAL_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/u;

/**
 * Reads the shape of an OCI source.
 * @throws AdmissionError field-unknown, input-invalid
 */
export function readOciTexts(
  value: JsonValue | undefined,
  author: Author,
): OciTexts {
  const at = pathOf("oci", author);
  const object = objectField(value, at, describeWithoutText) ?? {};
  // An XR author must not say what the Composition's author expects.
  if (author === "xr" && ownField(object, "expectedDigest") !== undefined) {
    throw new AdmissionError(
      "field-unknown",
      "unknown field expectedDigest, which is read from the Input only",
    );
  }
  const fields = readFields(object, at, {
    supported:
      author === "xr"
        ? ["ref", "credentials"]
        : ["ref", "expectedDigest", "credentials"],
  });
  return {
    ref: textField(fields.get("ref"), fieldPath(at, "ref")),
    expectedDigest: optionalText(fields, at, "expectedDigest"),
    credentials: optionalText(fields, at, "credentials"),
  };
}

/**
 * Reads the shape of an HTTP source.
 * @throws AdmissionError field-unknown, input-invalid
 */
export function readHttpTexts(
  value: JsonValue | undefined,
  author: Author,
): HttpTexts {
  const at = pathOf("http", author);
  const object = objectField(value, at, describeWithoutText) ?? {};
  const fields = readFields(object, at, {
    supported: ["url", "digest", "manifestURL", "manifestDigest"],
  });
  return {
    url: textField(fields.get("url"), fieldPath(at, "url")),
    digest: textField(fields.get("digest"), fieldPath(at, "digest")),
    manifest: readManifestTexts(fields, at),
  };
}

/**
 * Makes a source of the texts: a reference that is pinned, or whose tag is held to a digest, or
 * with the operator's leave a tag alone.
 * @throws AdmissionError input-invalid, source-refused
 */
export function ociSource(
  texts: OciTexts,
  author: Author,
  ceilings: SourceCeilings,
  parsers: SourceParsers,
): ModuleSource {
  const at = pathOf("oci", author);
  const refPath = fieldPath(at, "ref");
  const expectedPath = fieldPath(at, "expectedDigest");
  const ref = parsed(parsers.parseReference(texts.ref), refPath);
  const expectedDigest =
    texts.expectedDigest === null
      ? null
      : parsed(parsers.parseDigest(texts.expectedDigest), expectedPath);

  const shown = quoted(ref.text, MAX_SHOWN_CHARS);
  if (ref.digest === null && ref.tag === null) {
    throw invalidAt(
      refPath,
      `${shown} has neither tag nor digest, expected ${EXPECTED_REF}`,
    );
  }
  const isLocked = ref.digest !== null || expectedDigest !== null;
  // A tag is tomorrow what its owner makes of it.
  if (!isLocked && !ceilings.allowUnpinnedTags) {
    const remedy = author === "input" ? `set ${expectedPath}, or ` : "";
    throw new AdmissionError(
      "source-refused",
      `${refPath} is refused: ${shown} has a tag and no digest, which needs the runtime's --allow-unpinned-tags: ${remedy}pin it as ${EXPECTED_REF}`,
    );
  }
  if (
    ref.digest !== null &&
    expectedDigest !== null &&
    expectedDigest !== ref.digest
  ) {
    throw invalidAt(
      expectedPath,
      `expected ${quoted(ref.digest)}, which ${refPath} is pinned to, got ${quoted(expectedDigest)}`,
    );
  }
  const credentials = readCredentials(texts, fieldPath(at, "credentials"));
  return { type: "OCI", ref, expectedDigest, credentials };
}

/**
 * Makes a source of the texts.
 * @throws AdmissionError input-invalid
 */
export function httpSource(
  texts: HttpTexts,
  author: Author,
  parsers: SourceParsers,
): ModuleSource {
  const at = pathOf("http", author);
  const readUrl = (text: string, name: string) =>
    parsed(parsers.parseHttpUrl(text), fieldPath(at, name));
  const readDigest = (text: string, name: string) =>
    parsed(parsers.parseDigest(text), fieldPath(at, name));
  const { url, digest, manifest } = texts;
  return {
    type: "HTTP",
    url: readUrl(url, "url"),
    digest: readDigest(digest, "digest"),
    manifest: manifest && {
      url: readUrl(manifest.url, "manifestURL"),
      digest: readDigest(manifest.digest, "manifestDigest"),
    },
  };
}

function pathOf(field: "oci" | "http", author: Author): string {
  return author === "input" ? `module.${field}` : "";
}

function readManifestTexts(fields: Fields, at: string): HttpTexts["manifest"] {
  const url = optionalText(fields, at, "manifestURL");
  const digest = optionalText(fields, at, "manifestDigest");
  if (url !== null && digest !== null) return { url, digest };
  if (url === null && digest === null) return null;
  const [set, unset] =
    url === null
      ? ["manifestDigest", "manifestURL"]
      : ["manifestURL", "manifestDigest"];
  throw invalid(
    `${fieldPath(at, set)} is set but ${fieldPath(at, unset)} is not`,
  );
}

function readCredentials(
  { credentials }: OciTexts,
  path: string,
): string | null {
  if (credentials === null || CREDENTIAL_NAME.test(credentials))
    return credentials;
  throw invalidAt(
    path,
    `expected the name of a step credential (letters and digits, with "-", "_" or "." between them, at most 253), got text that is none`,
  );
}

function optionalText(fields: Fields, at: string, name: string): string | null {
  const value = fields.get(name);
  return value === undefined ? null : textField(value, fieldPath(at, name));
}

function parsed<T>(result: Parsed<T>, path: string): T {
  if (result.kind === "ok") return result.value;
  throw invalidAt(path, result.message);
}
