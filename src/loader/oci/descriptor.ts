import { quoted } from "../../errors.js";
import type { Digest } from "../../ports.js";
import { parseDigest } from "../digest.js";
import type { LoaderError } from "../error.js";
import { refuse } from "../refuse.js";
import { isJsonObject, type JsonValue, member } from "./strict-json.js";

/** Names a blob of a repository. Its `urls` and `data` are ignored: bytes come from the registry only. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly annotations: ReadonlyMap<string, string>;
}

/**
 * @param where what messages call it, such as `layers[0]`
 * @throws LoaderError artifact-invalid
 */
export function readDescriptor(value: JsonValue, where: string): Descriptor {
  if (!isJsonObject(value)) throw unexpected(where, "an object", value);
  const mediaType = member(value, "mediaType");
  if (typeof mediaType !== "string" || mediaType === "")
    throw unexpected(`${where}.mediaType`, "a media type", mediaType);
  const size = member(value, "size");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0)
    throw unexpected(`${where}.size`, "a number of bytes", size);
  const digestText = member(value, "digest");
  if (typeof digestText !== "string")
    throw unexpected(`${where}.digest`, "a digest", digestText);
  const digest = parseDigest(digestText);
  if (digest.kind === "error")
    throw refuse("artifact-invalid", `${where}.digest: ${digest.message}`);
  return {
    mediaType,
    digest: digest.value,
    sizeBytes: size,
    annotations: readAnnotations(member(value, "annotations"), where),
  };
}

/**
 * @param value `null` = none
 * @param where what messages call the object that has them
 * @throws LoaderError artifact-invalid
 */
export function readAnnotations(
  value: JsonValue,
  where: string,
): ReadonlyMap<string, string> {
  const annotations = new Map<string, string>();
  if (value === null) return annotations;
  if (!isJsonObject(value))
    throw unexpected(`${where}.annotations`, "an object", value);
  for (const [name, text] of Object.entries(value)) {
    if (typeof text !== "string")
      throw unexpected(`${where}.annotations[${quoted(name)}]`, "text", text);
    annotations.set(name, text);
  }
  return annotations;
}

/** For a value that is not what its place wants. */
export function unexpected(
  where: string,
  wanted: string,
  got: JsonValue,
): LoaderError {
  return refuse(
    "artifact-invalid",
    `${where}: expected ${wanted}, got ${shown(got)}`,
  );
}

function shown(value: JsonValue): string {
  if (typeof value === "string") return quoted(value);
  if (value === null) return "nothing";
  if (typeof value !== "object") return String(value);
  return Array.isArray(value) ? "a list" : "an object";
}
