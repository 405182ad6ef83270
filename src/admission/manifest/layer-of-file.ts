import type { Parsed } from "../../ports.js";
import { readDocument } from "./document.js";
import type { ModuleManifest } from "./manifest.js";
import { readManifest } from "./read-manifest.js";

/** A module's manifest, and the bytes it is published as. */
export interface LayerOfFile {
  readonly manifest: ModuleManifest;
  /** JSON, for an OCI layer. */
  readonly layerBytes: Uint8Array;
}

/**
 * Reads a `wasmfn.yaml` strictly, and writes the same fields as the JSON of an OCI layer, which is
 * then read as a runtime will read it.
 */
export function layerOfFile(fileBytes: Uint8Array): Parsed<LayerOfFile> {
  const read = readManifest("file", fileBytes);
  if (read.kind === "error") return read;
  const document = readDocument("file", fileBytes);
  const layerBytes = Buffer.from(JSON.stringify(document), "utf8");
  // It can be longer than the file, which needs fewer quotes.
  const asLayer = readManifest("layer", layerBytes);
  if (asLayer.kind === "error")
    return { kind: "error", message: `as JSON, ${asLayer.message}` };
  return { kind: "ok", value: { manifest: asLayer.value, layerBytes } };
}
