import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import {
  type Condition,
  Ready,
  type State,
  Status,
} from "../../gen/run_function_pb.js";
import { isObject, objectOrEmpty } from "../files/fields.js";
import type { Manifest } from "../files/manifest.js";
import type { PipelineOutcome } from "./pipeline.js";
import { compare } from "./requirements.js";

/** Conditions that only Crossplane sets. */
const SYSTEM_CONDITIONS = new Set([
  "Ready",
  "Synced",
  "Healthy",
  "Responsive",
  "UpToDate",
]);

/** The field is required and the real time would be noise. */
const TRANSITION_TIME = "2024-01-01T00:00:00Z";

/**
 * The composite resource with the status that the pipeline gave it, which is all that a pipeline
 * decides about it.
 * @param full with everything else that the input holds, instead of just its name
 */
export function compositeResource(
  xr: Manifest,
  { desired, conditions }: PipelineOutcome,
  full: boolean,
): JsonObject {
  const { apiVersion, kind, name, namespace, object } = xr;
  const status = objectOrEmpty(desired.composite?.resource?.["status"]);
  const ours = conditions.filter(({ type }) => !SYSTEM_CONDITIONS.has(type));
  const all = [readyCondition(desired), ...ours.map(formatCondition)];
  const rendered: JsonObject = {
    apiVersion,
    kind,
    metadata: { name, ...(namespace !== "" && { namespace }) },
    status: { ...status, conditions: withConditions(status, all) },
  };
  if (!full) return rendered;
  // The whole of the input but for its status, which is what the pipeline decides.
  const metadata = objectOrEmpty(object["metadata"]);
  return { ...object, ...rendered, metadata };
}

function readyCondition({ composite, resources }: State): JsonObject {
  const creating = {
    type: "Ready",
    status: "False",
    reason: "Creating",
    lastTransitionTime: TRANSITION_TIME,
  };
  const ready = composite?.ready ?? Ready.UNSPECIFIED;
  if (ready === Ready.FALSE) return creating;
  const waiting = Object.keys(resources)
    .filter((name) => resources[name]?.ready !== Ready.TRUE)
    .toSorted(compare);
  if (ready === Ready.UNSPECIFIED && waiting.length > 0) {
    return {
      ...creating,
      message: `Unready resources: ${firstThree(waiting)}`,
    };
  }
  return { ...creating, status: "True", reason: "Available" };
}

function firstThree(names: readonly string[]): string {
  if (names.length > 3) {
    return `${names.slice(0, 3).join(", ")}, and ${names.length - 3} more`;
  }
  const [a, b, c] = names;
  return c === undefined
    ? names.join(", ")
    : `${a ?? ""}, ${b ?? ""}, and ${c}`;
}

function formatCondition(condition: Condition): JsonObject {
  const { type, status, reason, message = "" } = condition;
  return {
    type,
    status: conditionStatus(status),
    reason,
    ...(message !== "" && { message }),
    lastTransitionTime: TRANSITION_TIME,
  };
}

function conditionStatus(status: Condition["status"]): string {
  if (status === Status.CONDITION_TRUE) return "True";
  return status === Status.CONDITION_FALSE ? "False" : "Unknown";
}

/** There is one condition of a type, the latest, where the first of that type was. */
function withConditions(
  status: JsonObject,
  conditions: readonly JsonObject[],
): JsonValue[] {
  const existing = status["conditions"];
  const merged = Array.isArray(existing) ? [...existing] : [];
  for (const condition of conditions) {
    const at = merged.findIndex(
      (other) => isObject(other) && other["type"] === condition["type"],
    );
    if (at === -1) merged.push(condition);
    else merged[at] = condition;
  }
  return merged;
}
