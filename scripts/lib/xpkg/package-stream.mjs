import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";

import { parseAllDocuments, stringify } from "yaml";

import { attempt } from "./attempt.mjs";
import { packageProblems } from "./package-rules.mjs";
import { ascii } from "./shown.mjs";
import { XpkgError } from "./xpkg-error.mjs";

const META_FILE = "crossplane.yaml";

/**
 * What package.yaml holds: the package's description, then all other documents below `dir`, by
 * path.
 *
 * @param {string} dir
 * @returns {string}
 * @throws {XpkgError} when a file cannot be read, or Crossplane would refuse the package
 */
export function packageStream(dir) {
  const others = yamlFiles(dir, "").filter((file) => file !== META_FILE);
  const documents = [META_FILE, ...others.sort()].flatMap((file) =>
    readDocuments(textOf(path.join(dir, file)), file),
  );
  const problems = packageProblems(documents);
  if (problems.length > 0) {
    throw new XpkgError(problems.join("\n"));
  }
  return documents.map(encode).join("");
}

/**
 * The documents of a YAML text; empty ones are left out.
 *
 * @param {string} text
 * @param {string} name for the message
 * @returns {unknown[]}
 * @throws {XpkgError}
 */
export function readDocuments(text, name) {
  try {
    return parseAllDocuments(text)
      .map((document) => {
        const [error] = document.errors;
        if (error !== undefined) throw error;
        return /** @type {unknown} */ (document.toJS({ maxAliasCount: 100 }));
      })
      .filter((document) => document !== null);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    const [line = ""] = reason.split("\n");
    throw new XpkgError(`${name} is not YAML: ${ascii(line)}`, { cause });
  }
}

/**
 * @param {unknown} document
 * @returns {string} the same to readers of YAML 1.1, as Go's are in part, and of 1.2
 */
function encode(document) {
  const options = /** @type {const} */ ({
    version: "1.1",
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
  return `---\n${stringify(document, options)}`;
}

/**
 * @param {string} root
 * @param {string} below
 * @returns {string[]}
 */
function yamlFiles(root, below) {
  const dir = path.join(root, below);
  const entries = attempt("read", dir, () =>
    readdirSync(dir, { withFileTypes: true }),
  );
  return entries.flatMap((entry) => {
    const name = path.posix.join(below, entry.name);
    if (entry.isDirectory()) return yamlFiles(root, name);
    return entry.isFile() && /\.ya?ml$/.test(name) ? [name] : [];
  });
}

/**
 * @param {string} file
 * @returns {string}
 */
function textOf(file) {
  return attempt("read", file, () => readFileSync(file, "utf8"));
}
