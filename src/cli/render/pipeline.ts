import { createHash } from "node:crypto";

import { create, type JsonObject, toBinary } from "@bufbuild/protobuf";

import { errorText, escaped, quoted } from "../../errors.js";
import {
  Capability,
  type Condition,
  RequestMetaSchema,
  type Result,
  type RunFunctionRequest,
  RunFunctionRequestSchema,
  SchemaSchema,
  Severity,
  type State,
  StateSchema,
} from "../../gen/run_function_pb.js";
import type { Step } from "./composition.js";
import { RenderError } from "./error.js";
import type { FunctionClient } from "./function-client.js";
import type { RenderInputs } from "./inputs.js";
import { callUntilStable, find } from "./requirements.js";

/** What a pipeline came to. */
export interface PipelineOutcome {
  readonly desired: State;
  /** `undefined` when the last step returned none. */
  readonly context: JsonObject | undefined;
  /** Without the fatal one. */
  readonly results: readonly StepResult[];
  readonly conditions: readonly Condition[];
  /** Why the pipeline stopped before its end; `null` when it did not. */
  readonly failure: RenderError | null;
}

/** A result and the step that returned it. */
export interface StepResult {
  readonly step: string;
  readonly result: Result;
}

const CAPABILITIES = [
  Capability.CAPABILITIES,
  Capability.REQUIRED_RESOURCES,
  Capability.CREDENTIALS,
  Capability.CONDITIONS,
  Capability.REQUIRED_SCHEMAS,
];

/**
 * Runs the steps one after the other, each on what the one before returned, until the first fatal
 * result or failed call, which become the outcome's `failure`.
 */
export async function runPipeline(
  inputs: RenderInputs,
  client: FunctionClient,
): Promise<PipelineOutcome> {
  const observed = observedState(inputs);
  const results: StepResult[] = [];
  const conditions: Condition[] = [];
  let desired = create(StateSchema);
  let context: JsonObject | undefined = inputs.context;
  let failure: RenderError | null = null;

  for (const step of inputs.steps) {
    const request = stepRequest(inputs, step, { observed, desired, context });
    try {
      const response = await callUntilStable(
        (next) => client.call(step.functionName, encode(next)),
        request,
        inputs.pool,
      );
      // Whatever a step does not pass on is gone, desired state and context alike.
      desired = response.desired ?? create(StateSchema);
      context = response.context;
      conditions.push(...response.conditions);
      failure = collect(step.name, response.results, results);
    } catch (thrown) {
      failure = failedStep(step.name, thrown);
    }
    if (failure !== null) break;
  }
  return { desired, context, results, conditions, failure };
}

function observedState({ xr, observed }: RenderInputs): State {
  return create(StateSchema, {
    composite: { resource: xr.object },
    resources: Object.fromEntries(
      [...observed].map(([name, { object }]) => [name, { resource: object }]),
    ),
  });
}

function stepRequest(
  inputs: RenderInputs,
  step: Step,
  state: Pick<RunFunctionRequest, "observed" | "desired" | "context">,
): RunFunctionRequest {
  const { observed, desired, context } = state;
  const request = create(RunFunctionRequestSchema, {
    ...(observed && { observed }),
    ...(desired && { desired }),
    ...(context && { context }),
    ...(step.input && { input: step.input }),
    credentials: Object.fromEntries(
      step.credentials.map((credential) => {
        const data = inputs.credentialData.get(credential) ?? {};
        const source = { case: "credentialData", value: { data } } as const;
        return [credential.name, { source }];
      }),
    ),
    requiredResources: Object.fromEntries(
      [...step.requiredResources].map(([name, selector]) => [
        name,
        find(selector, inputs.pool),
      ]),
    ),
    requiredSchemas: Object.fromEntries(
      step.requiredSchemas.map((name) => [name, create(SchemaSchema)]),
    ),
  });
  // One tag for all calls of a step, over the request without its meta.
  const tag = createHash("sha256").update(encode(request)).digest("hex");
  request.meta = create(RequestMetaSchema, {
    tag,
    capabilities: CAPABILITIES,
  });
  return request;
}

/** Map entries in order of key, so that equal requests are equal bytes. */
function encode(request: RunFunctionRequest): Uint8Array {
  return toBinary(RunFunctionRequestSchema, inKeyOrder(request));
}

function inKeyOrder<T>(value: T): T {
  if (Array.isArray(value)) return value.map(inKeyOrder) as T;
  if (
    typeof value !== "object" ||
    value === null ||
    value instanceof Uint8Array
  ) {
    return value;
  }
  const entries = Object.entries(value).toSorted(([a], [b]) =>
    a < b ? -1 : 1,
  );
  return Object.fromEntries(
    entries.map(([key, item]) => [key, inKeyOrder<unknown>(item)]),
  ) as T;
}

/** Takes results up to the first fatal one, which it returns. */
function collect(
  step: string,
  from: readonly Result[],
  into: StepResult[],
): RenderError | null {
  for (const result of from) {
    if (result.severity === Severity.FATAL) {
      return new RenderError(
        "pipeline-fatal",
        `pipeline step ${quoted(step)} returned a fatal result: ${escapeLines(result.message)}`,
      );
    }
    into.push({ step, result });
  }
  return null;
}

function failedStep(step: string, thrown: unknown): RenderError {
  const code = thrown instanceof RenderError ? thrown.code : "answer-invalid";
  return new RenderError(
    code,
    `cannot run pipeline step ${quoted(step)}: ${errorText(thrown)}`,
    { cause: thrown },
  );
}

/**
 * The message as it is, except for what could move the cursor or hide text: it comes from a module.
 */
function escapeLines(message: string): string {
  return message
    .split(/(["\\])/)
    .map((part, i) => (i % 2 === 0 ? escaped(part, 10_000) : part))
    .join("");
}
