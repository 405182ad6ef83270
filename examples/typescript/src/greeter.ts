/** Greeter: adds a ConfigMap to the desired state, and labels to everything in it. */
import { create, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import type log from "log";

import {
  Ready,
  ResourceSchema,
  ResponseMetaSchema,
  ResultSchema,
  type RunFunctionRequest,
  type RunFunctionResponse,
  RunFunctionResponseSchema,
  Severity,
  StateSchema,
} from "../gen/run_function_pb.js";
import { ConfigError, parseConfig } from "./config.js";

/** How long Crossplane may reuse the answer to an identical request. */
const TTL_SECONDS = 60n;

export function runFunction(
  request: RunFunctionRequest,
  hostLog: typeof log,
): RunFunctionResponse {
  const response = respondTo(request);
  try {
    compose(request, response, hostLog);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { message } = error;
    response.results.push(
      create(ResultSchema, { severity: Severity.FATAL, message }),
    );
  }
  return response;
}

/** A response that changes nothing: what a function does not pass on, Crossplane deletes. */
function respondTo(request: RunFunctionRequest): RunFunctionResponse {
  return create(RunFunctionResponseSchema, {
    meta: create(ResponseMetaSchema, {
      tag: request.meta?.tag ?? "",
      ttl: create(DurationSchema, { seconds: TTL_SECONDS }),
    }),
    desired: request.desired ?? create(StateSchema),
    ...(request.context && { context: request.context }),
  });
}

function compose(
  request: RunFunctionRequest,
  response: RunFunctionResponse,
  hostLog: typeof log,
): void {
  const { greeting, labels } = parseConfig(request.input);
  const name = asObject(request.observed?.composite?.resource?.["metadata"])[
    "name"
  ];
  if (typeof name !== "string" || name === "") {
    throw new ConfigError(
      "the observed composite resource has no metadata.name",
    );
  }

  const resources = response.desired!.resources;
  resources["greeting"] = create(ResourceSchema, {
    resource: {
      apiVersion: "v1",
      kind: "ConfigMap",
      data: { greeting: `${greeting}, ${name}` },
    },
    ready: Ready.TRUE,
  });
  for (const resource of Object.values(resources)) {
    resource.resource = labelled(resource.resource ?? {}, labels);
  }
  hostLog("info", "greeted", [["composite", name]]);
}

function labelled(
  object: JsonObject,
  labels: Record<string, string>,
): JsonObject {
  const metadata = asObject(object["metadata"]);
  return {
    ...object,
    metadata: {
      ...metadata,
      labels: { ...asObject(metadata["labels"]), ...labels },
    },
  };
}

function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? value
    : {};
}
