import { escaped, quoted } from "../../errors.js";
import { parseDigest } from "../digest.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import {
  type Descriptor,
  readAnnotations,
  readDescriptor,
  unexpected,
} from "./descriptor.js";
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  member,
  parseStrictJson,
} from "./strict-json.js";

/** An OCI or Docker image manifest, as far as a module needs it. */
export interface ImageManifest {
  readonly mediaType: string;
  readonly artifactType: string | null;
  readonly config: Descriptor;
  /** At most 128. */
  readonly layers: readonly Descriptor[];
  readonly annotations: ReadonlyMap<string, string>;
}

const OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX = "application/vnd.oci.image.index.v1+json";

/** What {@link readManifest} reads. */
export const MANIFEST_MEDIA_TYPES: readonly string[] = [
  OCI_MANIFEST,
  "application/vnd.docker.distribution.manifest.v2+json",
];

/** What {@link readManifest} refuses by name. */
export const INDEX_MEDIA_TYPES: readonly string[] = [
  OCI_INDEX,
  "application/vnd.docker.distribution.manifest.list.v2+json",
];

const SCHEMA_1_MEDIA_TYPES: readonly string[] = [
  "application/vnd.docker.distribution.manifest.v1+json",
  "application/vnd.docker.distribution.manifest.v1+prettyjws",
];

const MAX_LAYERS = 128;
const MAX_CHILDREN_SHOWN = 5;

/**
 * Reads an image manifest strictly. What its own `mediaType` says counts, and what the registry
 * says only where it says nothing.
 * @param bytes at most 4 MiB, already held to their digest
 * @param contentType of the answer; `null` = it had none
 * @throws LoaderError artifact-invalid, also for an index, which it names
 */
export function readManifest(
  bytes: Uint8Array,
  contentType: string | null,
): ImageManifest {
  const document = readDocument(bytes);
  const mediaType = mediaTypeOf(document, contentType);
  refuseIndex(document, mediaType);
  const schemaVersion = member(document, "schemaVersion");
  if (schemaVersion === 1 || SCHEMA_1_MEDIA_TYPES.includes(mediaType ?? ""))
    throw notAManifest("a Docker schema 1 manifest, which has no media types");
  if (mediaType !== null && !MANIFEST_MEDIA_TYPES.includes(mediaType))
    throw notAManifest(`the media type ${quoted(mediaType)}`);
  if (schemaVersion !== 2)
    throw unexpected("manifest.schemaVersion", "2", schemaVersion);
  return {
    mediaType: mediaType ?? OCI_MANIFEST,
    artifactType: textOrNull(document, "artifactType"),
    config: readDescriptor(member(document, "config"), "manifest.config"),
    layers: readLayers(member(document, "layers")),
    annotations: readAnnotations(member(document, "annotations"), "manifest"),
  };
}

function readDocument(bytes: Uint8Array): JsonObject {
  const head = Buffer.from(bytes.subarray(0, 1024)).toString("utf8").trim();
  if (head === "") throw notAManifest("an empty answer");
  if (head.startsWith("<")) throw notAManifest("a page of HTML or XML");
  const parsed = parseStrictJson(bytes);
  if (parsed.kind === "error")
    throw refuse("artifact-invalid", `the manifest is bad: ${parsed.message}`);
  if (!isJsonObject(parsed.value))
    throw unexpected("manifest", "an object", parsed.value);
  return parsed.value;
}

/** `null` when nobody says anything to go by, as with a registry made of static files. */
function mediaTypeOf(
  document: JsonObject,
  contentType: string | null,
): string | null {
  const own = textOrNull(document, "mediaType");
  if (own !== null) return own;
  const told = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  const known = [MANIFEST_MEDIA_TYPES, INDEX_MEDIA_TYPES, SCHEMA_1_MEDIA_TYPES];
  return known.some((types) => types.includes(told)) ? told : null;
}

/** Also what could be taken for one: a reader that goes by another sign would run something else. */
function refuseIndex(document: JsonObject, mediaType: string | null): void {
  const children = member(document, "manifests");
  if (mediaType !== null && INDEX_MEDIA_TYPES.includes(mediaType))
    throw indexRefused(mediaType, children);
  if (!Object.hasOwn(document, "manifests")) return;
  if (mediaType === null && !Object.hasOwn(document, "layers"))
    throw indexRefused(OCI_INDEX, children);
  throw notAManifest("one with a list of manifests in it, as an index has");
}

function indexRefused(mediaType: string, children: JsonValue): LoaderError {
  const shown = childrenShown(children);
  return refuse(
    "artifact-invalid",
    `the reference leads to an image index (${mediaType}), expected an image manifest: pin the digest of one manifest in it${shown === "" ? "" : `: ${shown}`}`,
  );
}

function childrenShown(children: JsonValue): string {
  if (!Array.isArray(children)) return "";
  const list: readonly JsonValue[] = children;
  const shown = list.slice(0, MAX_CHILDREN_SHOWN).flatMap(childShown);
  const others = list.length - MAX_CHILDREN_SHOWN;
  return [...shown, ...(others > 0 ? [`${others} more`] : [])].join(", ");
}

function childShown(child: JsonValue): readonly string[] {
  const digestText = isJsonObject(child) ? textOrNull(child, "digest") : null;
  if (!isJsonObject(child) || digestText === null) return [];
  const digest = parseDigest(digestText);
  if (digest.kind === "error") return [];
  const platform = member(child, "platform");
  const names = isJsonObject(platform)
    ? ["os", "architecture", "variant"].map((name) => member(platform, name))
    : [];
  const text = names.filter((name) => typeof name === "string").join("/");
  return [
    text === "" ? digest.value : `${digest.value} (${escaped(text, 40)})`,
  ];
}

function readLayers(value: JsonValue): readonly Descriptor[] {
  if (!Array.isArray(value))
    throw unexpected("manifest.layers", "a list", value);
  const list: readonly JsonValue[] = value;
  if (list.length > MAX_LAYERS) {
    throw refuse(
      "artifact-invalid",
      `the manifest has ${list.length} layers, at most ${MAX_LAYERS} are allowed`,
    );
  }
  return list.map((layer, i) => readDescriptor(layer, `manifest.layers[${i}]`));
}

function textOrNull(object: JsonObject, name: string): string | null {
  const value = member(object, name);
  if (value !== null && typeof value !== "string")
    throw unexpected(`manifest.${name}`, "text", value);
  return value;
}

function notAManifest(got: string): LoaderError {
  return refuse("artifact-invalid", `expected an image manifest, got ${got}`);
}
