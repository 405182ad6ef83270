import type { JsonObject } from "@bufbuild/protobuf";

import type { ModuleManifest } from "../../admission/index.js";
import { escaped, quoted } from "../../errors.js";
import type { InspectedArtifact } from "../../loader/index.js";
import type { OciReference } from "../../ports.js";
import { requiresBlock, requiresObject } from "./blocks.js";
import { jsonLine } from "../json-line.js";
import type { LocalModule } from "./local-module.js";
import { pinnedText } from "./references.js";

type Format = "text" | "json";

const MAX_TEXT_CHARS = 300;
const MAX_ANNOTATIONS = 50;

/** What is told of a module in a file. */
export function fileReport(
  { abi, file, manifest }: LocalModule,
  format: Format,
): string {
  const read = manifest?.manifest ?? null;
  if (format === "json") {
    return jsonLine({
      moduleDigest: file.digest,
      sizeBytes: file.sizeBytes,
      abi,
      ...manifestFields(read),
    });
  }
  return text([
    `module: ${file.digest} (${file.sizeBytes} bytes)`,
    `abi: ${abi}`,
    ...manifestLines(read),
  ]);
}

/** What is told of an artifact; all text in it is somebody else's. */
export function artifactReport(
  ref: OciReference,
  artifact: InspectedArtifact,
  manifest: ModuleManifest | null,
  format: Format,
): string {
  const { config, digest, layers, mediaType, sizeBytes } = artifact;
  const pinned = pinnedText(ref, digest);
  if (format === "json") {
    return jsonLine({
      ref: pinned,
      digest,
      mediaType,
      sizeBytes,
      config: descriptorObject(config),
      layers: layers.map((layer) => ({
        ...descriptorObject(layer),
        role: layer.role,
      })),
      annotations: Object.fromEntries(artifact.annotations),
      abi: manifest?.abi ?? null,
      ...manifestFields(manifest),
    });
  }
  return text([
    `artifact: ${pinned}`,
    `manifest: ${descriptorText({ digest, mediaType, sizeBytes })}`,
    `config: ${descriptorText(config)}`,
    ...layers.map(
      (layer) => `layer: ${descriptorText(layer)}${ROLE_TEXTS[layer.role]}`,
    ),
    ...annotationLines(artifact.annotations),
    `abi: ${manifest?.abi ?? "not told, the module has no manifest"}`,
    ...manifestLines(manifest),
  ]);
}

const ROLE_TEXTS = {
  module: ", the module",
  "module-in-tar": ", the module in a tar archive",
  "module-manifest": ", the manifest of the module",
  other: "",
} as const;

interface ShownDescriptor {
  readonly digest: string;
  readonly mediaType: string;
  readonly sizeBytes: number;
}

function descriptorText(descriptor: ShownDescriptor): string {
  const { digest, mediaType, sizeBytes } = descriptor;
  return `${digest} ${escaped(mediaType)} (${sizeBytes} bytes)`;
}

function descriptorObject(descriptor: ShownDescriptor): JsonObject {
  const { digest, mediaType, sizeBytes } = descriptor;
  return { digest, mediaType, sizeBytes };
}

function annotationLines(
  annotations: ReadonlyMap<string, string>,
): readonly string[] {
  const shown = [...annotations].slice(0, MAX_ANNOTATIONS);
  const others = annotations.size - shown.length;
  return [
    ...shown.map(
      ([key, value]) =>
        `annotation: ${escaped(key)}=${quoted(value, MAX_TEXT_CHARS)}`,
    ),
    ...(others > 0 ? [`annotation: ${others} more`] : []),
  ];
}

function manifestFields(manifest: ModuleManifest | null): JsonObject {
  return {
    hasManifest: manifest !== null,
    name: manifest?.name ?? null,
    version: manifest?.version ?? null,
    source: manifest?.source ?? null,
    minRuntime: manifest?.minRuntime ?? null,
    hasConfigSchema: manifest !== null && manifest.configSchema !== null,
    requires: manifest && requiresObject(manifest),
  };
}

function manifestLines(manifest: ModuleManifest | null): readonly string[] {
  if (manifest === null)
    return ["it has no manifest", requiresBlock(null).trimEnd()];
  const { configSchema, minRuntime, name, source, version } = manifest;
  return [
    ...line("name", name),
    ...line("version", version),
    ...line("source", source),
    ...line("minRuntime", minRuntime),
    ...(configSchema === null ? [] : ["config: has a schema"]),
    requiresBlock(requiresObject(manifest)).trimEnd(),
  ];
}

function line(label: string, value: string | null): readonly string[] {
  return value === null ? [] : [`${label}: ${escaped(value, MAX_TEXT_CHARS)}`];
}

function text(lines: readonly string[]): string {
  return lines.map((each) => `${each}\n`).join("");
}
