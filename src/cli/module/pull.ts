import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { dirname, extname, join } from "node:path";

import type { JsonObject } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";

import {
  AdmissionError,
  type ModuleManifest,
  readManifest,
} from "../../admission/index.js";
import { addFlags, ConfigError, type FlagName } from "../../config.js";
import { escaped, quoted } from "../../errors.js";
import { createLoader } from "../../loader/index.js";
import type { ManifestBytes, ModuleFile, OciReference } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import { FileError } from "../files/error.js";
import { writeYaml } from "../render/write-yaml.js";
import {
  isCacheDirGiven,
  loaderOptions,
  readSettings,
  schemeOptions,
  type Settings,
} from "../settings.js";
import { noMetrics } from "../silent.js";
import {
  moduleBlock,
  moduleObject,
  requiresBlock,
  requiresObject,
} from "./blocks.js";
import { refuseOptionWithItsNo } from "./exclusive-options.js";
import type { ModuleHost } from "./host.js";
import { jsonLine } from "../json-line.js";
import { MANIFEST_NAME, type ManifestOption } from "./manifest-file.js";
import { attempt, type Say } from "./outcome.js";
import {
  isSameOutputFile,
  type OutputContent,
  type OutputFile,
  requireWritable,
  writeOutputFiles,
} from "./output-file.js";
import { namingPlaceOnce } from "./place-once.js";
import { pinnedText, readFullReference } from "./references.js";
import { withTemporaryDir } from "./temporary-dir.js";
import { warningLogger } from "./warning-logger.js";

const FLAG_NAMES: readonly FlagName[] = [
  "max-module-size",
  "insecure-registry",
  "registry-ca",
  "registry-token-server",
  "cache-dir",
];

/** Adds `module pull`, which writes a module and its manifest to files. */
export function addPullCommand(group: Command, host: ModuleHost): void {
  const command = group
    .command("pull")
    .description("write the module that a reference leads to, and its manifest")
    .argument("<reference>", "registry/repository with a tag or a digest")
    .option(
      "--output-file <file>",
      "where the module goes; <name>.wasm by default, named for the repository",
    )
    .option(
      "--manifest-file <file>",
      "where its manifest goes, as YAML, or as it was published when the name ends in .json; wasmfn.yaml beside the module by default",
    )
    .option("--no-manifest-file", "write no manifest")
    .option("--force", "replace files that are there")
    .addOption(
      new Option("--output <format>", "text, or json: one object")
        .choices(["text", "json"])
        .default("text"),
    );
  refuseOptionWithItsNo(command, "manifest-file");
  addFlags(command, FLAG_NAMES)
    .addHelpText("after", HELP)
    .action(async (refText: string, options: Options) => {
      process.exitCode = await attempt("module pull", (say) =>
        pull(refText, options, command, host, say),
      );
    });
}

const HELP = `
The registry is asked with the credential that the Docker config (DOCKER_CONFIG) has for it.
Nothing is kept in a cache, unless --cache-dir is given.

Exit code: 0 it is written, 1 the artifact or its manifest is refused, 2 anything else.`;

interface Options {
  readonly outputFile?: string;
  readonly manifestFile?: ManifestOption;
  readonly force?: true;
  readonly output: "text" | "json";
}

/** Where what was pulled goes. */
interface Destination {
  readonly wasm: OutputFile;
  /** null = nowhere. */
  readonly manifest: OutputFile | null;
}

/** A module on this machine, and its manifest. */
interface Pulled {
  readonly file: ModuleFile;
  readonly manifest: PulledManifest | null;
  /** With the digest that a tag led to. */
  readonly ref: string;
}

interface PulledManifest {
  readonly bytes: Uint8Array;
  readonly manifest: ModuleManifest;
}

async function pull(
  refText: string,
  options: Options,
  command: Command,
  host: ModuleHost,
  say: Say,
): Promise<void> {
  const config = readSettings(command, host.env, FLAG_NAMES);
  const ref = readFullReference(refText, schemeOptions(config));
  const to = destination(ref, options);
  await requireTwoFiles(to, options);
  await requireWritable(to.wasm);
  // Whether there is a manifest is not known yet: only who names a file for it expects one.
  if (options.manifestFile !== undefined && to.manifest !== null)
    await requireWritable(to.manifest);
  const fetchAndWrite = async (cacheDir: string): Promise<void> => {
    const pulled = await namingPlaceOnce(ref, () =>
      fetchModule(ref, { ...config, cacheDir }, host, say),
    );
    await writeFiles(pulled, to, say);
    process.stdout.write(report(pulled, to, options.output));
  };
  await (isCacheDirGiven(command, host.env)
    ? fetchAndWrite(config.cacheDir)
    : withTemporaryDir(fetchAndWrite));
}

const WASM_ADVICE = "--force replaces it, --output-file writes another";
const MANIFEST_ADVICE =
  "--force replaces it, --manifest-file writes another, --no-manifest-file none";

function destination(ref: OciReference, options: Options): Destination {
  const { force, manifestFile, outputFile } = options;
  const replaces = force ?? false;
  const name = ref.repository.split("/").at(-1) ?? "module";
  const wasmFile = outputFile ?? `${name}.wasm`;
  return {
    wasm: {
      path: wasmFile,
      flag: "--output-file",
      replaces,
      advice: WASM_ADVICE,
    },
    manifest:
      manifestFile === false
        ? null
        : {
            path: manifestFile ?? join(dirname(wasmFile), MANIFEST_NAME),
            flag: "--manifest-file",
            replaces,
            advice: MANIFEST_ADVICE,
          },
  };
}

/**
 * The one written last would take the place of the other.
 * @throws ConfigError flag-invalid
 */
async function requireTwoFiles(
  { wasm, manifest }: Destination,
  options: Options,
): Promise<void> {
  if (manifest === null) return;
  if (!(await isSameOutputFile(wasm.path, manifest.path))) return;
  const byDefault =
    options.manifestFile === undefined
      ? ` (by default ${MANIFEST_NAME} beside the module)`
      : "";
  throw new ConfigError(
    "flag-invalid",
    `--output-file and --manifest-file${byDefault} are the same file, ${quoted(wasm.path, 1000)}`,
  );
}

/** Its file lies in the cache directory. */
async function fetchModule(
  ref: OciReference,
  config: Settings,
  { clock, env }: ModuleHost,
  say: Say,
): Promise<Pulled> {
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  const loader = createLoader(
    {
      ...loaderOptions(config, schemeOptions(config), env),
      // Whoever pulls a tag wants to know where it leads now.
      tags: { resolveIntervalMs: 0, maxStalenessMs: null },
    },
    { clock, logger: warningLogger(say), metrics: noMetrics },
  );
  try {
    const found = await loader.resolve(
      { type: "OCI", ref, expectedDigest: null, credentials: null },
      { credentialOf: () => null, redirectFence: null },
      scope,
    );
    const { description } = found.module;
    const delivered = await found.readManifest(scope);
    const manifest = delivered && readPulled(delivered, description);
    say(`pulling ${description}`);
    const file = await found.module.locate();
    const { manifestDigest } = found;
    return {
      file,
      manifest,
      ref: manifestDigest === null ? ref.text : pinnedText(ref, manifestDigest),
    };
  } finally {
    await loader.close();
  }
}

function readPulled(
  { bytes, form }: ManifestBytes,
  description: string,
): PulledManifest {
  const read = readManifest(form, bytes);
  if (read.kind === "ok") return { bytes, manifest: read.value };
  throw new AdmissionError(
    "manifest-invalid",
    `module ${description}: its manifest is invalid: ${read.message}`,
  );
}

async function writeFiles(
  pulled: Pulled,
  to: Destination,
  say: Say,
): Promise<void> {
  const contents: OutputContent[] = [
    { file: to.wasm, chunks: contentOf(pulled.file) },
  ];
  if (pulled.manifest !== null && to.manifest !== null) {
    const { bytes } = pulled.manifest;
    const isJson = extname(to.manifest.path) === ".json";
    const chunks = [isJson ? bytes : yamlOf(bytes)];
    contents.push({ file: to.manifest, chunks });
  }
  for (const { file } of contents) await requireWritable(file);
  await writeOutputFiles(contents, (path, sizeBytes) => {
    say(`wrote ${escaped(path, 1000)} (${sizeBytes} bytes)`);
  });
}

/** @param json of a manifest that was read without complaint */
function yamlOf(json: Uint8Array): Uint8Array {
  const value = JSON.parse(Buffer.from(json).toString("utf8")) as JsonObject;
  return Buffer.from(writeYaml(value), "utf8");
}

/** Others may write to the cache. */
async function* contentOf({ filePath, digest, description }: ModuleFile) {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(filePath)) {
    const bytes = chunk as Buffer;
    hash.update(bytes);
    yield bytes;
  }
  if (`sha256:${hash.digest("hex")}` === digest) return;
  throw new FileError(
    "file-invalid",
    `module ${description}: what is in the cache changed while it was being copied`,
  );
}

function report(
  { file, manifest, ref }: Pulled,
  to: Destination,
  format: Options["output"],
): string {
  const requires = manifest && requiresObject(manifest.manifest);
  switch (format) {
    case "text":
      return `${ref}\n\n${moduleBlock(ref)}\n${requiresBlock(requires)}`;
    case "json":
      return jsonLine({
        ref,
        moduleDigest: file.digest,
        sizeBytes: file.sizeBytes,
        outputFile: to.wasm.path,
        manifestFile: manifest && (to.manifest?.path ?? null),
        module: moduleObject(ref),
        requires,
      });
  }
}
