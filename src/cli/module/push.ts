import { type Command, Option } from "commander";

import type { ModuleManifest } from "../../admission/index.js";
import { addFlags, ConfigError, type FlagName } from "../../config.js";
import { quoted } from "../../errors.js";
import {
  createPublisher,
  dockerConfigFileOf,
  type PushProgress,
  type SchemeOptions,
} from "../../loader/index.js";
import type { Digest, OciReference, Parsed } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import { readSettings, schemeOptions } from "../settings.js";
import { annotationsOf, parseAnnotations } from "./annotations.js";
import {
  moduleBlock,
  moduleObject,
  requiresBlock,
  requiresObject,
} from "./blocks.js";
import { refuseOptionWithItsNo } from "./exclusive-options.js";
import type { ModuleHost } from "./host.js";
import { jsonLine } from "../json-line.js";
import {
  describeForPublication,
  judgeModule,
  type LocalModule,
} from "./local-module.js";
import { attempt, type Say } from "./outcome.js";
import { namingPlaceOnce } from "./place-once.js";
import { pinnedText, readReference } from "./references.js";
import { createdDate } from "./reproducible-date.js";
import { warningLogger } from "./warning-logger.js";

const FLAG_NAMES: readonly FlagName[] = [
  "max-module-size",
  "insecure-registry",
  "registry-ca",
  "registry-token-server",
  "module-memory-limit",
  "module-stack-limit",
];

/** Adds `module push`, which publishes a module that the runtime would take. */
export function addPushCommand(group: Command, host: ModuleHost): void {
  const command = group
    .command("push")
    .description(
      "publish a module, and its manifest, as an OCI artifact; what the runtime would refuse is not published",
    )
    .argument("<wasm>", "the module's file")
    .argument(
      "<reference>",
      "registry/repository[:tag] to publish it under; without a tag it is found by its digest only",
    )
    .option(
      "--manifest <file>",
      "its manifest; without this option the wasmfn.yaml beside the module, if there is one",
    )
    .option("--no-manifest", "publish it without a manifest")
    .option(
      "--annotation <key=value>",
      "an annotation of the artifact; repeatable",
      (value: string, before: readonly string[] | undefined) => [
        ...(before ?? []),
        value,
      ],
    )
    .option("--overwrite", "move a tag that leads to something else already")
    .addOption(
      new Option("--output <format>", "text, or json: one object")
        .choices(["text", "json"])
        .default("text"),
    );
  refuseOptionWithItsNo(command, "manifest");
  addFlags(command, FLAG_NAMES)
    .addHelpText("after", HELP)
    .action(async (wasmFile: string, refText: string, options: Options) => {
      process.exitCode = await attempt("module push", (say) =>
        push(wasmFile, refText, options, command, host, say),
      );
    });
}

const HELP = `
The registry is asked with the credential that the Docker config (DOCKER_CONFIG) has for it.
With SOURCE_DATE_EPOCH in the environment the same files make the same digest.

Exit code: 0 it is published, 1 the module or its manifest is refused, 2 anything else.`;

interface Options {
  readonly manifest?: string | false;
  readonly annotation?: readonly string[];
  readonly overwrite?: true;
  readonly output: "text" | "json";
}

async function push(
  wasmFile: string,
  refText: string,
  options: Options,
  command: Command,
  host: ModuleHost,
  say: Say,
): Promise<void> {
  const { clock, env } = host;
  const config = readSettings(command, env, FLAG_NAMES);
  const scheme = schemeOptions(config);
  const ref = readTarget(refText, scheme);
  const given = required(parseAnnotations(options.annotation ?? []));
  const created = required(createdDate(env, clock.nowMs()));
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  const local = await judgeModule(
    wasmFile,
    options.manifest,
    config,
    host,
    say,
    scope,
  );
  const manifest = local.manifest?.manifest ?? null;

  const publisher = createPublisher(
    { ...scheme, dockerConfigFile: dockerConfigFileOf(env), env },
    { clock, logger: warningLogger(say) },
  );
  try {
    const publication = {
      ref,
      module: await describeForPublication(local),
      modulePath: local.file.filePath,
      manifestJson: local.manifest?.layerBytes ?? null,
      annotations: annotationsOf({ given, created, wasmFile, manifest }),
      created,
      overwrite: options.overwrite ?? false,
      onProgress: (event: PushProgress) => say(progressText(event)),
    };
    const digest = await namingPlaceOnce(ref, () =>
      publisher.push(publication, scope),
    );
    process.stdout.write(report(ref, digest, local, options.output));
  } finally {
    await publisher.close();
  }
}

const TARGET_FORM = "registry/repository[:tag]";

/** Where it is to go: which digest it will have is not for the command line to say. */
function readTarget(text: string, scheme: SchemeOptions): OciReference {
  const ref = readReference(text, scheme, TARGET_FORM);
  if (ref.digest === null) return ref;
  throw new ConfigError(
    "flag-invalid",
    `reference: expected ${TARGET_FORM}, got ${quoted(ref.text, 1000)}: the digest of an artifact comes from its content, and is printed when it is published`,
  );
}

function required<T>(parsed: Parsed<T>): T {
  if (parsed.kind === "ok") return parsed.value;
  throw new ConfigError("flag-invalid", parsed.message);
}

function progressText({ kind, digest, sizeBytes }: PushProgress): string {
  const [what, done] = {
    "blob-exists": ["blob", "is there already"],
    "blob-pushed": ["blob", "pushed"],
    "manifest-exists": ["artifact", "is there already, and so is its tag"],
    "manifest-pushed": ["artifact", "pushed"],
  }[kind] as [string, string];
  return `${what} ${digest} (${sizeBytes} bytes) ${done}`;
}

function report(
  ref: OciReference,
  digest: Digest,
  { abi, file, manifest }: LocalModule,
  format: Options["output"],
): string {
  const pinned = pinnedText(ref, digest);
  const requires = requiresOf(manifest?.manifest ?? null);
  switch (format) {
    case "text":
      return `${pinned}\n\n${moduleBlock(pinned)}\n${requiresBlock(requires)}`;
    case "json":
      return jsonLine({
        ref: pinned,
        digest,
        moduleDigest: file.digest,
        sizeBytes: file.sizeBytes,
        abi,
        hasManifest: manifest !== null,
        module: moduleObject(pinned),
        requires,
      });
  }
}

function requiresOf(manifest: ModuleManifest | null) {
  return manifest === null ? null : requiresObject(manifest);
}
