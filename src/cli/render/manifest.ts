import { readdir, readFile, stat } from "node:fs/promises";
import { basename, extname, join } from "node:path";

import type { JsonObject } from "@bufbuild/protobuf";

import { errorText, quoted } from "../../errors.js";
import { RenderError } from "./error.js";
import { type Field, optionalText, path, text, texts } from "./fields.js";
import { readYaml, type YamlDocument } from "./yaml.js";

/** A Kubernetes object that came from a file. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty when it has none, as an object with only a generateName. */
  readonly name: string;
  /** Empty when it has none. */
  readonly namespace: string;
  readonly labels: ReadonlyMap<string, string>;
  readonly annotations: ReadonlyMap<string, string>;
  readonly object: JsonObject;
  /** The whole object as a field, for reading on. */
  readonly root: Field;
}

/**
 * The objects in a YAML file, or in the `.yaml` and `.yml` files of a directory, in order of file
 * name; directories inside it are left out.
 * @throws RenderError file-unreadable, file-invalid
 */
export async function readManifests(location: string): Promise<Manifest[]> {
  const files = await yamlFiles(location);
  const streams = await Promise.all(files.map(readFileText));
  return streams.flatMap((stream, i) =>
    readYaml(stream, basename(files[i] ?? location)).map(parseManifest),
  );
}

/**
 * The only object in a YAML file.
 * @throws RenderError file-unreadable, file-invalid
 */
export async function readManifest(location: string): Promise<Manifest> {
  const manifests = await readManifests(location);
  const [only] = manifests;
  if (only === undefined || manifests.length > 1) {
    throw new RenderError(
      "file-invalid",
      `${basename(location)}: expected one YAML document, got ${manifests.length}`,
    );
  }
  return only;
}

/** @throws RenderError file-unreadable */
export async function readFileText(location: string): Promise<string> {
  try {
    const bytes = await readFile(location);
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (thrown) {
    throw unreadable(location, thrown);
  }
}

async function yamlFiles(location: string): Promise<string[]> {
  try {
    if (!(await stat(location)).isDirectory()) return [location];
    const entries = await readdir(location, { withFileTypes: true });
    const files = entries
      .filter(
        (entry) =>
          !entry.isDirectory() &&
          [".yaml", ".yml"].includes(extname(entry.name)),
      )
      .map((entry) => join(location, entry.name))
      .sort();
    if (files.length > 0) return files;
  } catch (thrown) {
    throw unreadable(location, thrown);
  }
  throw new RenderError(
    "file-invalid",
    `${location}: expected .yaml or .yml files in this directory, got none`,
  );
}

function parseManifest({ value, where }: YamlDocument): Manifest {
  const root = { value, where };
  const metadata = path(root, "metadata");
  const manifest = {
    apiVersion: text(path(root, "apiVersion")),
    kind: text(path(root, "kind")),
    name: optionalText(path(metadata, "name")),
    namespace: optionalText(path(metadata, "namespace")),
    labels: texts(path(metadata, "labels")),
    annotations: texts(path(metadata, "annotations")),
  };
  return { ...manifest, object: value as JsonObject, root };
}

function unreadable(location: string, thrown: unknown): RenderError {
  return new RenderError(
    "file-unreadable",
    `cannot read ${quoted(location)}: ${errorText(thrown)}`,
    { cause: thrown },
  );
}
