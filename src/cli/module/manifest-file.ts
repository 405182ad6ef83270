import { lstat } from "node:fs/promises";
import { dirname, join } from "node:path";

import {
  AdmissionError,
  checkSuitability,
  layerOfFile,
  type LayerOfFile,
  type ModuleManifest,
} from "../../admission/index.js";
import { errorText, escaped, quoted } from "../../errors.js";
import { FileError } from "../files/error.js";
import { namingFlag } from "../files/naming-flag.js";
import { readFileText } from "../files/text.js";
import type { Say } from "./outcome.js";

/** What a module's manifest is called beside the module. */
export const MANIFEST_NAME = "wasmfn.yaml";

/** As the command line has it: the file of --manifest, false for --no-manifest. */
export type ManifestOption = string | false | undefined;

/**
 * The manifest that a module in a file is published with, and says which; null = none. Without a
 * word on the command line it is the `wasmfn.yaml` beside the module, if there is one.
 * @param module what messages call it
 * @throws AdmissionError manifest-invalid, runtime-too-old; FileError
 */
export async function readManifestFile(
  option: ManifestOption,
  wasmFile: string,
  module: string,
  say: Say,
): Promise<LayerOfFile | null> {
  if (option === false) return null;
  const file = option ?? join(dirname(wasmFile), MANIFEST_NAME);
  if (option === undefined && !(await exists(file))) {
    say(`no manifest: there is no ${escaped(file, MAX_SHOWN_CHARS)}`);
    return null;
  }
  say(`manifest ${escaped(file, MAX_SHOWN_CHARS)}`);
  const text = await (option === undefined
    ? readFileText(file)
    : namingFlag("--manifest", () => readFileText(file)));
  const read = layerOfFile(Buffer.from(text, "utf8"));
  if (read.kind === "error") {
    throw new AdmissionError(
      "manifest-invalid",
      `module ${module}: its manifest is invalid: ${escaped(file, MAX_SHOWN_CHARS)}: ${read.message}`,
    );
  }
  requireRuntime(read.value.manifest, module);
  return read.value;
}

const MAX_SHOWN_CHARS = 1_000;

/**
 * Holds this runtime to what a manifest needs.
 * @throws AdmissionError runtime-too-old
 */
function requireRuntime(manifest: ModuleManifest, module: string): void {
  // Which config a step will have is not known here.
  const anyConfig = { ...manifest, configSchema: null };
  checkSuitability(anyConfig, module, () => undefined);
}

/** What cannot be looked at is there: a module must not lose its manifest by accident. */
async function exists(file: string): Promise<boolean> {
  try {
    await lstat(file);
    return true;
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown && thrown.code;
    if (code === "ENOENT") return false;
    throw new FileError(
      "file-unreadable",
      `cannot read ${quoted(file, MAX_SHOWN_CHARS)}: ${escaped(errorText(thrown), 1000)}`,
      { cause: thrown },
    );
  }
}
