import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type sendUnaryData,
  type ServerUnaryCall,
  type status,
} from "@grpc/grpc-js";

import {
  type RunFunctionRequest,
  RunFunctionRequestSchema,
  type RunFunctionResponse,
  RunFunctionResponseSchema,
} from "../../../src/gen/run_function_pb.js";
import type { MessageInitShape } from "@bufbuild/protobuf";

/** What a scripted function says to one request. */
export type Script = (
  request: RunFunctionRequest,
  callNumber: number,
) =>
  MessageInitShape<typeof RunFunctionResponseSchema> | Uint8Array | GrpcError;

/** A gRPC status instead of an answer. */
export interface GrpcError {
  readonly code: status;
  readonly details: string;
}

/** A function on a port of its own, and what it was asked. */
export interface FunctionServer {
  readonly port: number;
  readonly requests: RunFunctionRequest[];
  close(): Promise<void>;
}

/** Serves a script over plain gRPC, as `v1` or as `v1beta1` only. */
export async function serveFunction(
  script: Script,
  version: "v1" | "v1beta1" = "v1",
): Promise<FunctionServer> {
  const requests: RunFunctionRequest[] = [];
  const server = new Server();
  server.addService(definition(version), {
    RunFunction(
      call: ServerUnaryCall<Uint8Array, Uint8Array>,
      callback: sendUnaryData<Uint8Array>,
    ) {
      const request = fromBinary(RunFunctionRequestSchema, call.request);
      requests.push(request);
      const answer = script(request, requests.length);
      if ("code" in answer) callback(answer);
      else callback(null, encode(answer));
    },
  });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(
      "127.0.0.1:0",
      ServerCredentials.createInsecure(),
      (error, bound) => {
        if (error === null) resolve(bound);
        else reject(error);
      },
    );
  });
  return {
    port,
    requests,
    close: () =>
      new Promise((resolve) => {
        server.forceShutdown();
        server.tryShutdown(() => resolve());
      }),
  };
}

function encode(answer: Exclude<ReturnType<Script>, GrpcError>): Uint8Array {
  if (answer instanceof Uint8Array) return answer;
  const message: RunFunctionResponse = create(
    RunFunctionResponseSchema,
    answer,
  );
  return toBinary(RunFunctionResponseSchema, message);
}

function definition(version: string): ServiceDefinition {
  return {
    RunFunction: {
      path: `/apiextensions.fn.proto.${version}.FunctionRunnerService/RunFunction`,
      requestStream: false,
      responseStream: false,
      requestSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (bytes: Uint8Array) => Buffer.from(bytes),
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  };
}
