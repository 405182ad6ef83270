import { stat } from "node:fs/promises";

import { type Command, Option } from "commander";

import { AdmissionError, readManifest } from "../../admission/index.js";
import { addFlags, ConfigError, type FlagName } from "../../config.js";
import { quoted } from "../../errors.js";
import {
  createPublisher,
  createSourceParsers,
  dockerConfigFileOf,
} from "../../loader/index.js";
import type { OciReference } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import { readSettings, schemeOptions, type Settings } from "../settings.js";
import { refuseOptionWithItsNo } from "./exclusive-options.js";
import type { ModuleHost } from "./host.js";
import { artifactReport, fileReport } from "./inspect-report.js";
import { judgeModule } from "./local-module.js";
import type { ManifestOption } from "./manifest-file.js";
import { attempt, type Say } from "./outcome.js";
import { namingPlaceOnce } from "./place-once.js";
import { readFullReference } from "./references.js";
import { warningLogger } from "./warning-logger.js";

const FLAG_NAMES: readonly FlagName[] = [
  "max-module-size",
  "insecure-registry",
  "registry-ca",
  "registry-token-server",
  "module-memory-limit",
  "module-stack-limit",
];

/** Adds `module inspect`, which tells what a module is without running it. */
export function addInspectCommand(group: Command, host: ModuleHost): void {
  const command = group
    .command("inspect")
    .description(
      "tell what a module is: a file, which is compiled, or a reference, whose module is not pulled",
    )
    .argument(
      "<file-or-reference>",
      "a file that exists or begins with ./, ../ or /, else registry/repository with a tag or a digest",
    )
    .option(
      "--manifest <file>",
      "the manifest of a file; without this option the wasmfn.yaml beside it, if there is one",
    )
    .option("--no-manifest", "leave its manifest out")
    .addOption(
      new Option("--output <format>", "text, or json: one object")
        .choices(["text", "json"])
        .default("text"),
    );
  refuseOptionWithItsNo(command, "manifest");
  addFlags(command, FLAG_NAMES)
    .addHelpText("after", HELP)
    .action(async (subject: string, options: Options) => {
      process.exitCode = await attempt("module inspect", (say) =>
        inspect(subject, options, command, host, say),
      );
    });
}

const HELP = `
Exit code: 0 it is told, 1 the module or its manifest is refused, 2 anything else.`;

interface Options {
  readonly manifest?: ManifestOption;
  readonly output: "text" | "json";
}

async function inspect(
  subject: string,
  { manifest, output }: Options,
  command: Command,
  host: ModuleHost,
  say: Say,
): Promise<void> {
  const config = readSettings(command, host.env, FLAG_NAMES);
  const scope = createRequestScope({ deadlineAtMs: Infinity });
  if (await isFile(subject)) {
    const local = await judgeModule(
      subject,
      manifest,
      config,
      host,
      say,
      scope,
    );
    process.stdout.write(fileReport(local, output));
    return;
  }
  if (manifest !== undefined)
    throw new ConfigError(
      "flag-invalid",
      "--manifest is for a file: an artifact has its own manifest",
    );
  const ref = readSubject(subject, config);
  await inspectReference(ref, config, output, host, say);
}

async function inspectReference(
  ref: OciReference,
  config: Settings,
  output: Options["output"],
  { clock, env }: ModuleHost,
  say: Say,
): Promise<void> {
  const publisher = createPublisher(
    {
      ...schemeOptions(config),
      dockerConfigFile: dockerConfigFileOf(env),
      env,
    },
    { clock, logger: warningLogger(say) },
  );
  try {
    const scope = createRequestScope({ deadlineAtMs: Infinity });
    const artifact = await namingPlaceOnce(ref, () =>
      publisher.inspect(ref, scope),
    );
    const { moduleManifest } = artifact;
    const read =
      moduleManifest && readManifest(moduleManifest.form, moduleManifest.bytes);
    if (read?.kind === "error") {
      throw new AdmissionError(
        "manifest-invalid",
        `module OCI ${ref.text}: its manifest is invalid: ${read.message}`,
      );
    }
    process.stdout.write(
      artifactReport(ref, artifact, read?.value ?? null, output),
    );
  } finally {
    await publisher.close();
  }
}

/** A directory may have the name of a repository. */
async function isFile(subject: string): Promise<boolean> {
  if (/^\.{0,2}\//u.test(subject)) return true;
  return await stat(subject).then(
    (stats) => !stats.isDirectory(),
    () => false,
  );
}

/** Whoever misspells a file is told about files, too. */
function readSubject(subject: string, config: Settings): OciReference {
  if (subject === "")
    throw new ConfigError(
      "flag-invalid",
      'expected the path of a file or a reference, got ""',
    );
  const scheme = schemeOptions(config);
  const parsed = createSourceParsers(scheme).parseReference(subject);
  if (parsed.kind === "ok" && !/[:@]/u.test(subject)) {
    throw new ConfigError(
      "flag-invalid",
      `${quoted(subject, 1000)} is no file here, and as a reference it has no tag and no digest`,
    );
  }
  return readFullReference(subject, scheme);
}
