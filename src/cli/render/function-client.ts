import { fromBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, status } from "@grpc/grpc-js";

import { errorText, escaped, quoted } from "../../errors.js";
import {
  type RunFunctionResponse,
  RunFunctionResponseSchema,
} from "../../gen/run_function_pb.js";
import { RenderError } from "./error.js";
import type { FunctionTargets } from "./functions.js";

/** Calls functions that already run, over plain gRPC. */
export interface FunctionClient {
  /**
   * Sends RunFunctionRequest bytes to a function: as v1, and again as v1beta1 when it does not
   * implement v1.
   * @throws RenderError function-failed, answer-invalid
   */
  call(functionName: string, request: Uint8Array): Promise<RunFunctionResponse>;
  close(): void;
}

const PACKAGES = [
  "apiextensions.fn.proto.v1",
  "apiextensions.fn.proto.v1beta1",
] as const;

/** What Crossplane can receive; it cannot be raised there, so it is not raised here. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/**
 * A client for the functions of a pipeline.
 * @param deadline when all calls together must have ended
 * @param timeoutText what the caller was told about it, for messages
 */
export function createFunctionClient(
  targets: FunctionTargets,
  deadline: Date,
  timeoutText: string,
): FunctionClient {
  const clients = new Map<string, Client>();
  const clientFor = (target: string): Client => {
    const client =
      clients.get(target) ??
      new Client(target, credentials.createInsecure(), {
        "grpc.enable_http_proxy": 0,
        "grpc.max_receive_message_length": MAX_RESPONSE_BYTES,
        "grpc.service_config_disable_resolution": 1,
      });
    clients.set(target, client);
    return client;
  };

  return {
    async call(functionName, request) {
      const target = targets.get(functionName) ?? "";
      const outcome = await callEither(clientFor(target), request, deadline);
      const called = `the function ${quoted(functionName)} at ${escaped(target.replace(/^dns:\/\/\//, ""))}`;
      if (outcome.kind === "error") {
        throw failure(called, outcome, timeoutText);
      }
      try {
        return fromBinary(RunFunctionResponseSchema, outcome.response);
      } catch (thrown) {
        throw new RenderError(
          "answer-invalid",
          `${called} answered with something that is no RunFunctionResponse: ${errorText(thrown)}`,
          { cause: thrown },
        );
      }
    },
    close() {
      for (const client of clients.values()) client.close();
    },
  };
}

type Outcome =
  | { readonly kind: "ok"; readonly response: Uint8Array }
  | {
      readonly kind: "error";
      readonly code: status;
      readonly details: string;
    };

async function callEither(
  client: Client,
  request: Uint8Array,
  deadline: Date,
): Promise<Outcome> {
  const [v1, v1beta1] = PACKAGES;
  const outcome = await callOne(client, v1, request, deadline);
  return outcome.kind === "error" && outcome.code === status.UNIMPLEMENTED
    ? callOne(client, v1beta1, request, deadline)
    : outcome;
}

function callOne(
  client: Client,
  packageName: string,
  request: Uint8Array,
  deadline: Date,
): Promise<Outcome> {
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      `/${packageName}.FunctionRunnerService/RunFunction`,
      (bytes: Uint8Array) => Buffer.from(bytes),
      (bytes) => bytes,
      request,
      new Metadata(),
      { deadline },
      (error, response) => {
        if (error !== null) {
          resolve({ kind: "error", code: error.code, details: error.details });
        } else {
          resolve({ kind: "ok", response: response ?? new Uint8Array() });
        }
      },
    );
  });
}

function failure(
  called: string,
  { code, details }: { code: status; details: string },
  timeoutText: string,
): RenderError {
  const reason = escaped(details.replace(EMPTY_NOTE, ""), 400);
  if (code === status.UNAVAILABLE) {
    return failed(
      `cannot reach ${called}: is it running with --insecure? (${reason})`,
    );
  }
  if (code === status.DEADLINE_EXCEEDED) {
    return failed(
      `${called} did not answer within the --timeout of ${timeoutText}`,
    );
  }
  return failed(`${called} failed: ${status[code]}: ${reason}`);
}

/** What grpc-js ends its words with when it has no more to say. */
const EMPTY_NOTE = /\.? *Resolution note: *$/u;

function failed(message: string): RenderError {
  return new RenderError("function-failed", message);
}
