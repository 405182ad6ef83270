import { basename } from "node:path";

import type { ModuleManifest } from "../../admission/index.js";
import { quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";

const PREFIX = "org.opencontainers.image.";
const CREATED = `${PREFIX}created`;
/** Of all keys and values together: registries take manifests of 4 MiB. */
const MAX_CHARS = 64 * 1024;
/** What no reader of annotations expects in a key. */
const NOT_IN_KEYS = /[\s\p{C}]/u;

/** Reads what --annotation was given, in any order. */
export function parseAnnotations(
  texts: readonly string[],
): Parsed<ReadonlyMap<string, string>> {
  const annotations = new Map<string, string>();
  for (const text of texts) {
    const equals = text.indexOf("=");
    const key = text.slice(0, Math.max(equals, 0));
    if (key === "" || NOT_IN_KEYS.test(key))
      return error(`expected key=value, got ${quoted(text)}`);
    if (key === CREATED) {
      return error(
        `${CREATED} is the time of publication, or what SOURCE_DATE_EPOCH says`,
      );
    }
    if (annotations.has(key)) return error(`${quoted(key)} comes twice`);
    annotations.set(key, text.slice(equals + 1));
  }
  const chars = [...annotations].flat().join("").length;
  if (chars > MAX_CHARS)
    return error(`expected at most ${MAX_CHARS} characters, got ${chars}`);
  return { kind: "ok", value: annotations };
}

/**
 * The annotations of an artifact: when it was made, the name of its file, and what its manifest
 * says of version and source; those that were given win.
 */
export function annotationsOf(options: {
  readonly given: ReadonlyMap<string, string>;
  readonly created: Date;
  readonly wasmFile: string;
  readonly manifest: ModuleManifest | null;
}): ReadonlyMap<string, string> {
  const { created, given, manifest, wasmFile } = options;
  const { version = null, source = null } = manifest ?? {};
  return new Map([
    [CREATED, created.toISOString()],
    [`${PREFIX}title`, basename(wasmFile)],
    ...optional(`${PREFIX}version`, version),
    ...optional(`${PREFIX}source`, source),
    ...given,
  ]);
}

function optional(key: string, value: string | null): [string, string][] {
  return value === null ? [] : [[key, value]];
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message: `--annotation: ${message}` };
}
