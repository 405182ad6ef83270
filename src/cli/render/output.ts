import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { Severity } from "../../gen/run_function_pb.js";
import { composedResource } from "./composed-resource.js";
import { compositeResource } from "./composite-resource.js";
import { RenderError } from "./error.js";
import type { RenderInputs } from "./inputs.js";
import type { PipelineOutcome, StepResult } from "./pipeline.js";
import { compare } from "./requirements.js";
import { writeYaml } from "./write-yaml.js";

/** What to print besides the composite and composed resources. */
export interface OutputOptions {
  readonly includeFunctionResults: boolean;
  readonly includeFullXr: boolean;
  readonly includeContext: boolean;
}

const RENDER_API = "render.crossplane.io/v1beta1";

/**
 * The YAML stream of a pipeline that came to its end: the composite resource, the composed ones in
 * order of name, then results and context when asked for.
 * @throws RenderError desired-invalid
 */
export function formatOutput(
  { xr, observed }: RenderInputs,
  outcome: PipelineOutcome,
  options: OutputOptions,
): string {
  const { desired, context } = outcome;
  const composed = Object.keys(desired.resources)
    .toSorted(compare)
    .map((name) =>
      composedResource(
        name,
        desired.resources[name]?.resource,
        xr,
        observed.get(name),
      ),
    );
  const resources = [
    compositeResource(xr, outcome, options.includeFullXr),
    ...composed,
  ];
  const contexts =
    options.includeContext && context !== undefined
      ? [{ apiVersion: RENDER_API, kind: "Context", fields: context }]
      : [];
  return (
    formatStream(resources) +
    formatResults(outcome.results, options) +
    formatStream(contexts)
  );
}

/** The YAML stream of what functions said, when it was asked for. */
export function formatResults(
  results: readonly StepResult[],
  options: OutputOptions,
): string {
  if (!options.includeFunctionResults) return "";
  return formatStream(
    results.map(({ step, result }) => ({
      apiVersion: RENDER_API,
      kind: "Result",
      step,
      severity: severityName(result.severity),
      message: result.message,
    })),
  );
}

function formatStream(documents: readonly JsonObject[]): string {
  return documents
    .map((document) => {
      requireFinite(document);
      return `---\n${writeYaml(document)}`;
    })
    .join("");
}

function severityName(severity: number): string {
  const found = Object.entries(Severity).find(
    ([, value]) => value === severity,
  );
  return `SEVERITY_${found?.[0] ?? severity}`;
}

function requireFinite(value: JsonValue): void {
  if (typeof value === "number" && !Number.isFinite(value)) {
    throw new RenderError(
      "desired-invalid",
      `the pipeline returned the number ${value}, which JSON cannot hold`,
    );
  }
  if (typeof value === "object" && value !== null) {
    Object.values(value).forEach(requireFinite);
  }
}
