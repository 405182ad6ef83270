import { type Command, Option } from "commander";

import type { PolicyEngine } from "../admission/index.js";
import { addFlags, type Environment, type FlagName } from "../config.js";
import type { createEngine } from "../engine/index.js";
import { errorText, escaped, quoted, WasmFunctionError } from "../errors.js";
import type { Clock } from "../ports.js";
import { FileError } from "./files/error.js";
import { readFileText, readStreamText, yamlFiles } from "./files/text.js";
import { readYaml } from "./files/yaml.js";
import { isCacheDirGiven, readSettings, requireModuleDir } from "./settings.js";
import { type CheckParts, checkSubject } from "./validate/check.js";
import { openParts } from "./validate/parts.js";
import { createPassedOver, type PassedOver } from "./validate/passed-over.js";
import {
  jsonReport,
  placeOf,
  type Report,
  textReport,
} from "./validate/report.js";
import { findSubjects, type Subject } from "./validate/subject.js";

/** The outside world, as far as validating needs it. */
export interface ValidateHost {
  readonly env: Environment;
  readonly clock: Clock;
  readonly createEngine: typeof createEngine;
  readonly createPolicyEngine: () => PolicyEngine;
  readonly stdin: () => AsyncIterable<Uint8Array>;
}

/** The flags of `serve` that decide about an Input or its module. */
const FLAG_NAMES: readonly FlagName[] = [
  "module-dir",
  "max-module-size",
  "allow-unpinned-tags",
  "insecure-registry",
  "registry-ca",
  "registry-token-server",
  "sandbox-policy-file",
  "module-timeout",
  "module-memory-limit",
  "module-stack-limit",
  "cache-dir",
  "artifact-key-file",
  "trust-cache-dir",
];

/**
 * Adds `validate`, which judges Inputs as the server would, without cluster. Sets
 * `process.exitCode`: 0 all admitted, 1 one refused, 2 the tool itself failed or found nothing.
 */
export function addValidateCommand(program: Command, host: ValidateHost): void {
  const command = program
    .command("validate")
    .description(
      "judge the Inputs in Compositions, or Inputs by themselves, as the server would, without cluster",
    )
    .argument(
      "<files...>",
      "YAML or JSON files, or directories of .yaml and .yml files; - is the standard input",
    )
    .option(
      "--xr <file>",
      "the observed composite resource: what module.from reads, and who asks the policies; without it module.from is left open, and the policies are asked for a request without namespace and kind",
    )
    .option(
      "--function-name <name>",
      "judge the steps that call the function of this name, whatever their input is, and no others",
    )
    .option(
      "--resolve",
      "read and compile the modules too, and decide what their manifests require",
    )
    .addOption(
      new Option("--output <format>", "text, or json: an object on each line")
        .choices(["text", "json"])
        .default("text"),
    );
  addFlags(command, FLAG_NAMES)
    .addHelpText("after", HELP)
    .action(async (locations: string[], options: Options) => {
      process.exitCode = await validate(locations, options, command, host);
    });
}

const HELP = `
The flags of serve have the names, variables and defaults they have there: give the
values that the runtime has. --cache-dir is used with --resolve only; unless it is
given, compiled modules are not kept.

Exit code: 0 every Input is admitted, 1 one is refused, 2 a file, flag or policy
cannot be used, an Input could not be judged or there was none. Warnings do not
change it.`;

interface Options {
  readonly xr?: string;
  readonly functionName?: string;
  readonly resolve?: true;
  readonly output: "text" | "json";
}

type ExitCode = 0 | 1 | 2;

/** Does not throw. */
async function validate(
  locations: readonly string[],
  options: Options,
  command: Command,
  host: ValidateHost,
): Promise<ExitCode> {
  try {
    refuseSecondStdin(locations);
    const config = readSettings(command, host.env, FLAG_NAMES);
    if (options.resolve) requireModuleDir(config);
    const open = await openParts({
      ...host,
      config,
      keepsCache: isCacheDirGiven(command, host.env),
      xrFile: options.xr ?? null,
      resolves: options.resolve ?? false,
      onLoad: showProgress,
    });
    try {
      return await judgeAll(locations, options, open.parts, host);
    } finally {
      await open.close();
    }
  } catch (thrown) {
    return fail(thrown);
  }
}

async function judgeAll(
  locations: readonly string[],
  options: Options,
  parts: CheckParts,
  host: ValidateHost,
): Promise<ExitCode> {
  const report: Report = options.output === "json" ? jsonReport : textReport;
  const count = { admitted: 0, refused: 0, warnings: 0, failures: 0 };
  const passedOver = createPassedOver();
  // A file that cannot be read says nothing about the next.
  const attempt = async <T>(work: () => Promise<T[]>): Promise<T[]> => {
    try {
      return await work();
    } catch (thrown) {
      if (!(thrown instanceof FileError)) throw thrown;
      fail(thrown);
      count.failures += 1;
      return [];
    }
  };
  for (const location of locations) {
    for (const file of await attempt(() => filesAt(location))) {
      for (const subject of await attempt(() =>
        readSubjects(file, options, passedOver, host),
      )) {
        try {
          const verdict = await checkSubject(subject, parts);
          count[verdict.refusal === null ? "admitted" : "refused"] += 1;
          count.warnings += verdict.warnings.length;
          process.stdout.write(report.verdict(verdict));
        } catch (thrown) {
          fail(thrown, subject);
          count.failures += 1;
        }
      }
    }
  }
  const isEmpty = count.admitted + count.refused === 0;
  if (!isEmpty) process.stdout.write(report.summary(count));
  if (count.failures > 0) return 2;
  if (isEmpty) return fail(nothingFound(options, passedOver));
  return count.refused > 0 ? 1 : 0;
}

/** A check that checked nothing must not look like one that passed. */
function nothingFound(
  { functionName }: Options,
  passedOver: PassedOver,
): FileError {
  const step =
    functionName === undefined
      ? "no pipeline step with an Input of wasm.fn.crossplane.io"
      : `no pipeline step that calls the function ${quoted(functionName)} of --function-name`;
  const found = passedOver.text();
  const others = found === "" ? "" : `; passed over: ${found}`;
  const hint =
    functionName === undefined && passedOver.hasSteps()
      ? "; --function-name judges the steps that call a function, whatever their input is"
      : "";
  return new FileError(
    "file-invalid",
    `nothing to judge: found ${step}, and no Input${others}${hint}`,
  );
}

async function filesAt(location: string): Promise<string[]> {
  return location === "-" ? [location] : await yamlFiles(location);
}

async function readSubjects(
  file: string,
  { functionName }: Options,
  passedOver: PassedOver,
  { stdin }: ValidateHost,
): Promise<Subject[]> {
  const isStdin = file === "-";
  const name = isStdin ? STDIN : file;
  const text = await (isStdin
    ? readStreamText(stdin(), name)
    : readFileText(file));
  const documents = readYaml(text, name);
  return findSubjects(name, documents, functionName ?? null, passedOver);
}

/** What messages and reports call the standard input. */
const STDIN = "<stdin>";

function refuseSecondStdin(locations: readonly string[]): void {
  if (locations.filter((location) => location === "-").length < 2) return;
  throw new FileError(
    "file-invalid",
    "the standard input (-) can be read once only",
  );
}

/** For those who wait and wonder; a log has no use for it. */
function showProgress(moduleDescription: string): void {
  if (!process.stderr.isTTY) return;
  process.stderr.write(`validate: loading module ${moduleDescription}\n`);
}

/** @param subject what could not be judged for it; without it everything failed, or a file */
function fail(thrown: unknown, subject?: Subject): 2 {
  const text = errorText(thrown);
  const isOurs = thrown instanceof WasmFunctionError;
  const at = subject === undefined ? "" : `${placeOf(subject)}: `;
  process.stderr.write(
    `validate: ${at}${isOurs ? text : escaped(text, 1000)}\n`,
  );
  return 2;
}
