import type { JsonObject } from "@bufbuild/protobuf";

import { escaped } from "../../errors.js";
import { FileError } from "./error.js";
import { type Field, optionalText, path, text, texts } from "./fields.js";
import { readFileText, yamlFiles } from "./text.js";
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
 * @throws FileError file-unreadable, file-invalid
 */
export async function readManifests(location: string): Promise<Manifest[]> {
  const files = await yamlFiles(location);
  const streams = await Promise.all(files.map(readFileText));
  return streams.flatMap((stream, i) =>
    readYaml(stream, files[i] ?? location).map(parseManifest),
  );
}

/**
 * The only object in a YAML file.
 * @throws FileError file-unreadable, file-invalid
 */
export async function readManifest(location: string): Promise<Manifest> {
  const manifests = await readManifests(location);
  const [only] = manifests;
  if (only === undefined || manifests.length > 1) {
    throw new FileError(
      "file-invalid",
      `${escaped(location, 4096)}: expected one YAML document, got ${manifests.length}`,
    );
  }
  return only;
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
