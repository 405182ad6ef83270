import { type Command, InvalidArgumentError, Option } from "commander";

import { errorText } from "../errors.js";
import { parseTimeoutMs } from "../flag-values.js";
import type { Clock } from "../ports.js";
import { RenderError, type RenderErrorCode } from "./render/error.js";
import { createFunctionClient } from "./render/function-client.js";
import { parseTarget } from "./render/functions.js";
import { type InputLocations, readInputs } from "./render/inputs.js";
import {
  formatOutput,
  formatResults,
  type OutputOptions,
} from "./render/output.js";
import { runPipeline } from "./render/pipeline.js";

/** What `render` prints, and its exit code: 0 rendered, 1 the pipeline failed, 2 anything else. */
interface RenderOutcome {
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  /** One line, or empty. */
  readonly stderr: string;
}

/** What `render` was asked to do. */
interface RenderRequest {
  readonly locations: InputLocations;
  readonly output: OutputOptions;
  readonly timeout: { readonly ms: number; readonly text: string };
}

/**
 * Adds `render`, which runs a Composition's pipeline against functions that already run and prints
 * what Crossplane would apply. Sets `process.exitCode`.
 */
export function addRenderCommand(program: Command, clock: Clock): void {
  program
    .command("render")
    .description(
      "print what Crossplane would make of a composite resource, without cluster or Docker",
    )
    .argument("<xr>", "YAML file of the composite resource")
    .argument("<composition>", "YAML file of the Composition, mode Pipeline")
    .argument("<functions>", "YAML file or directory of the Functions")
    .option(
      "-o, --observed-resources <path>",
      "YAML file or directory of composed resources that exist already",
    )
    .option(
      "-e, --required-resources <path>",
      "YAML file or directory of resources that functions may require; repeatable",
      append,
    )
    .option(
      "--extra-resources <path>",
      "the same, by its former name; repeatable",
      append,
    )
    .option(
      "--context-values <key=value>",
      "a value of the context, in YAML or JSON; repeatable",
      appendPair,
    )
    .option(
      "--context-files <key=file>",
      "a value of the context from a file; repeatable",
      appendPair,
    )
    .option(
      "--function-credentials <path>",
      "YAML file or directory of the Secrets that steps refer to",
    )
    .option(
      "--target <host:port>",
      "where every function listens, whatever the Functions say",
      target,
    )
    .option("-r, --include-function-results", "print what functions say")
    .option("-x, --include-full-xr", "print the whole composite resource")
    .option("-c, --include-context", "print the context")
    .addOption(
      new Option("--timeout <duration>", "how long the whole pipeline may take")
        .argParser(timeout)
        .default(timeout("1m"), "1m"),
    )
    .addHelpText("after", HELP)
    .action(
      async (
        xr: string,
        composition: string,
        functions: string,
        options: Options,
      ) => {
        const request = toRequest({ xr, composition, functions }, options);
        const { exitCode, stdout, stderr } = await render(request, clock);
        process.stdout.write(stdout);
        if (stderr !== "") process.stderr.write(`${stderr}\n`);
        process.exitCode = exitCode;
      },
    );
}

const HELP = `
The functions have to run already, without TLS: serve --insecure.

Exit code: 0 it is rendered, 1 the pipeline failed, or what it returned cannot be
applied, 2 a file or flag cannot be used, or a function cannot be reached or does
not answer as one.`;

/** Runs a Composition's pipeline and formats what came of it. Does not throw. */
async function render(
  { locations, output, timeout }: RenderRequest,
  clock: Pick<Clock, "nowMs">,
): Promise<RenderOutcome> {
  let stdout = "";
  try {
    const inputs = await readInputs(locations);
    const client = createFunctionClient(
      inputs.targets,
      new Date(clock.nowMs() + timeout.ms),
      timeout.text,
    );
    try {
      const outcome = await runPipeline(inputs, client);
      if (outcome.failure === null) {
        stdout = formatOutput(inputs, outcome, output);
      } else {
        stdout = formatResults(outcome.results, output);
        throw outcome.failure;
      }
    } finally {
      client.close();
    }
    return { exitCode: 0, stdout, stderr: "" };
  } catch (thrown) {
    const exitCode = thrown instanceof RenderError ? EXIT[thrown.code] : 2;
    return { exitCode, stdout, stderr: `render: ${errorText(thrown)}` };
  }
}

const EXIT = {
  "answer-invalid": 2,
  "desired-invalid": 1,
  "function-failed": 2,
  "pipeline-fatal": 1,
  "pipeline-unstable": 1,
} as const satisfies Record<RenderErrorCode, 1 | 2>;

type Pair = readonly [string, string];

interface Options {
  readonly observedResources?: string;
  readonly requiredResources?: readonly string[];
  readonly extraResources?: readonly string[];
  readonly contextValues?: readonly Pair[];
  readonly contextFiles?: readonly Pair[];
  readonly functionCredentials?: string;
  readonly target?: string;
  readonly includeFunctionResults?: true;
  readonly includeFullXr?: true;
  readonly includeContext?: true;
  readonly timeout: RenderRequest["timeout"];
}

function toRequest(
  files: Pick<InputLocations, "xr" | "composition" | "functions">,
  options: Options,
): RenderRequest {
  return {
    locations: {
      ...files,
      target: options.target ?? null,
      observedResources: options.observedResources ?? null,
      requiredResources: [
        ...(options.extraResources ?? []),
        ...(options.requiredResources ?? []),
      ],
      functionCredentials: options.functionCredentials ?? null,
      contextValues: options.contextValues ?? [],
      contextFiles: options.contextFiles ?? [],
    },
    output: {
      includeFunctionResults: options.includeFunctionResults ?? false,
      includeFullXr: options.includeFullXr ?? false,
      includeContext: options.includeContext ?? false,
    },
    timeout: options.timeout,
  };
}

function append(text: string, previous: readonly string[] = []): string[] {
  return [...previous, text];
}

function appendPair(text: string, previous: readonly Pair[] = []): Pair[] {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("expected key=value");
  return [...previous, [text.slice(0, at), text.slice(at + 1)]];
}

function target(text: string): string {
  const parsed = parseTarget(text);
  if (parsed !== null) return parsed;
  throw new InvalidArgumentError("expected host:port or dns:///host:port");
}

function timeout(text: string): RenderRequest["timeout"] {
  const parsed = parseTimeoutMs(text);
  if (parsed.kind === "ok") return parsed.value;
  throw new InvalidArgumentError(`expected ${parsed.expected}`);
}
