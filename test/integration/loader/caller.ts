import {
  create,
  fromBinary,
  toBinary,
  type JsonObject,
} from "@bufbuild/protobuf";
import { Client, credentials as channel } from "@grpc/grpc-js";

import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
  Severity,
  type RunFunctionResponse,
} from "../../../src/gen/run_function_pb.js";

/** A step of a Composition, as Crossplane calls the function for it. */
export interface Step {
  readonly module: JsonObject;
  readonly compositionPolicy?: string;
  /** The composite resource's. */
  readonly spec?: JsonObject;
  /** Step credentials: texts by their keys, by name. */
  readonly credentials?: Readonly<
    Record<string, Readonly<Record<string, string>>>
  >;
}

/** What a step is answered. */
export interface StepAnswer {
  /** The messages of its results in order, each that is no normal one after its severity. */
  readonly messages: readonly string[];
  readonly response: RunFunctionResponse;
  /** As they came. */
  readonly bytes: Buffer;
}

/** Calls a function as Crossplane does. */
export interface Caller {
  call(step: Step): Promise<StepAnswer>;
  close(): void;
}

const METHOD = "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction";
const DEADLINE_MS = 30_000;

/** @param address `host:port` */
export function connect(address: string): Caller {
  const client = new Client(address, channel.createInsecure());
  return {
    async call(step) {
      const request = requestOf(step);
      const bytes = await new Promise<Buffer>((resolve, reject) => {
        client.makeUnaryRequest(
          METHOD,
          (sent: Buffer) => sent,
          (received) => received,
          request,
          { deadline: Date.now() + DEADLINE_MS },
          (error, answer) => {
            if (error === null) resolve(answer ?? Buffer.alloc(0));
            else reject(error);
          },
        );
      });
      const response = fromBinary(RunFunctionResponseSchema, bytes);
      return { messages: messagesIn(response), response, bytes };
    },
    close: () => client.close(),
  };
}

function requestOf({
  module,
  compositionPolicy,
  spec = {},
  credentials = {},
}: Step): Buffer {
  const request = create(RunFunctionRequestSchema, {
    meta: { tag: "c0ffee" },
    input: {
      apiVersion: "wasm.fn.crossplane.io/v1",
      kind: "Input",
      module,
      ...(compositionPolicy === undefined ? {} : { compositionPolicy }),
    },
    observed: {
      composite: {
        resource: {
          apiVersion: "example.org/v1",
          kind: "XApp",
          metadata: { name: "app", namespace: "team-a" },
          spec,
        },
      },
    },
    credentials: Object.fromEntries(
      Object.entries(credentials).map(([name, data]) => [name, secret(data)]),
    ),
  });
  return Buffer.from(toBinary(RunFunctionRequestSchema, request));
}

function secret(data: Readonly<Record<string, string>>) {
  const bytes = Object.entries(data).map(([key, text]): [string, Buffer] => [
    key,
    Buffer.from(text),
  ]);
  return {
    source: {
      case: "credentialData" as const,
      value: { data: Object.fromEntries(bytes) },
    },
  };
}

function messagesIn({ results }: RunFunctionResponse): string[] {
  return results.map(
    ({ severity, message }) => `${PREFIXES[severity] ?? "?"}${message}`,
  );
}

const PREFIXES: Readonly<Record<number, string>> = {
  [Severity.NORMAL]: "",
  [Severity.WARNING]: "WARNING: ",
  [Severity.FATAL]: "FATAL: ",
};
