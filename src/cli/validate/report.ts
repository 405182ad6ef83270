import { escaped } from "../../errors.js";
import { jsonLine } from "../json-line.js";
import type { RunLimits } from "../../ports.js";
import type { Verdict } from "./finding.js";
import type { Subject } from "./subject.js";

/** How verdicts are told. */
export interface Report {
  /** Lines of one verdict, each ended. */
  verdict(verdict: Verdict): string;
  /** What ends the report. */
  summary(count: Count): string;
}

/** How many there were. */
export interface Count {
  readonly admitted: number;
  readonly refused: number;
  readonly warnings: number;
}

/** For people: a line for each Input, what is to be said about it below, and a last line that counts. */
export const textReport: Report = {
  verdict(verdict) {
    const { subject, refusal, grants, warnings } = verdict;
    const outcome =
      refusal === null
        ? `OK (${details(verdict)})`
        : `refused [${refusal.code}]: ${refusal.message}`;
    const lines = [
      `${placeOf(subject)}: ${outcome}`,
      ...warnings.map(({ message }) => `  warning: ${message}`),
      ...namesLine("credentials", grants?.credentials),
      ...namesLine("env", grants?.env),
    ];
    return lines.map((line) => `${line}\n`).join("");
  },
  summary: ({ admitted, refused, warnings }) =>
    `${admitted} admitted, ${refused} refused, ${warnings} ${warnings === 1 ? "warning" : "warnings"}\n`,
};

/** For programs: a JSON object on a line for each Input. `docs/validate.md` promises its fields. */
export const jsonReport: Report = {
  verdict(verdict) {
    const { subject, refusal, module, from, limits, warnings } = verdict;
    const { compositionPolicy, grants } = verdict;
    const { file, document, step } = subject;
    return jsonLine({
      file,
      document,
      composition: step?.composition ?? null,
      step: step?.name ?? null,
      index: step?.index ?? null,
      verdict: refusal === null ? "admitted" : "refused",
      code: refusal?.code ?? null,
      message: refusal?.message ?? null,
      module,
      from,
      limits,
      compositionPolicy,
      warnings,
      credentials: grants?.credentials ?? null,
      env: grants?.env ?? null,
    });
  },
  summary: () => "",
};

const MAX_PATH_CHARS = 4096;

/** How people are told which Input is meant: its file, and its step or name. */
export function placeOf({ file, document, step, name }: Subject): string {
  const at = escaped(file, MAX_PATH_CHARS);
  if (step === null) {
    return name === ""
      ? `${at}: Input document[${document}]`
      : `${at}: Input/${escaped(name)}`;
  }
  const composition =
    step.composition === ""
      ? `Composition document[${document}]`
      : `Composition/${escaped(step.composition)}`;
  const stepName = step.name === "" ? "" : ` ${escaped(step.name)}`;
  return `${at}: ${composition} pipeline[${step.index}]${stepName}`;
}

function details(verdict: Verdict): string {
  const { limits, compositionPolicy } = verdict;
  return [
    moduleText(verdict),
    ...(limits === null ? [] : [limitsText(limits)]),
    ...(compositionPolicy ? ["compositionPolicy"] : []),
  ].join(", ");
}

function moduleText({ module, from }: Verdict): string {
  const field = `${from ?? ""} of the composite resource`;
  if (module === null) return `no module, ${field} is not set`;
  if (module.location === null) return `${module.type} named by ${field}`;
  return `${module.type} ${escaped(module.location, MAX_PATH_CHARS)}`;
}

function limitsText({
  timeoutMs,
  memoryBytes,
  concurrency,
}: RunLimits): string {
  const runs = concurrency === null ? "" : ` concurrency ${concurrency}`;
  return `limits timeout ${timeoutMs / 1000}s memory ${quantity(memoryBytes)}${runs}`;
}

/** As a Kubernetes quantity, in the largest unit that it is a whole number of. */
function quantity(bytes: number): string {
  let value = bytes;
  let unit = "";
  for (const next of ["Ki", "Mi", "Gi"]) {
    if (value % 1024 !== 0) break;
    value /= 1024;
    unit = next;
  }
  return `${value}${unit}`;
}

function namesLine(label: string, names: readonly string[] = []): string[] {
  if (names.length === 0) return [];
  return [`  ${label}: ${names.map((name) => escaped(name)).join(", ")}`];
}
