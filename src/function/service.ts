import {
  status,
  type sendUnaryData,
  type ServerInterceptingCall,
  type ServerInterceptor,
  type ServerUnaryCall,
  type ServiceDefinition,
} from "@grpc/grpc-js";

import type { Clock } from "../ports.js";
import { createRequestScope, type CancellableScope } from "../request-scope.js";
import { compressedDetails, expectedEncoding } from "./grpc-encoding.js";
import { expectedTimeout, invalidTimeoutDetails } from "./grpc-timeout.js";
import type { RunFunction } from "./run-function.js";

/** Names of the one service under which Crossplane may call it; up to 1.16 it knew only the beta. */
export const serviceNames = [
  "apiextensions.fn.proto.v1.FunctionRunnerService",
  "apiextensions.fn.proto.v1beta1.FunctionRunnerService",
] as const;

/** Whether a call's path is that of RunFunction. */
export function isRunFunction(path: string | undefined): boolean {
  return path !== undefined && paths.has(path);
}

const paths: ReadonlySet<string> = new Set(serviceNames.map(pathOf));

function pathOf(serviceName: string): string {
  return `/${serviceName}/RunFunction`;
}

/** A unary call whose request and response stay the bytes they are. */
export type RawUnaryCall = ServerUnaryCall<Buffer, Uint8Array>;

/** The service by one of its {@link serviceNames}, with messages as bytes. */
export function rawServiceDefinition(serviceName: string): ServiceDefinition {
  return {
    RunFunction: {
      path: pathOf(serviceName),
      requestStream: false,
      responseStream: false,
      requestSerialize: asBuffer,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: asBuffer,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  };
}

/** Calls that are being answered. */
export interface CallTracker {
  /** Tells every call that its caller has gone. */
  cancelAll(): void;
  readonly handle: (
    call: RawUnaryCall,
    callback: sendUnaryData<Uint8Array>,
  ) => void;
}

/** Ties calls to {@link RunFunction}: deadline and cancellation in, answer or status out. */
export function createCallTracker(
  runFunction: RunFunction,
  clock: Clock,
): CallTracker {
  const open = new Set<CancellableScope>();

  async function answer(
    call: RawUnaryCall,
    callback: sendUnaryData<Uint8Array>,
  ): Promise<void> {
    const scope = createRequestScope({
      deadlineAtMs: deadlineAtMs(call, clock),
    });
    const cancel = () => scope.cancel();
    call.once("cancelled", cancel);
    open.add(scope);
    try {
      const result = await runFunction(call.request, scope);
      switch (result.kind) {
        case "response":
          callback(null, result.bytes);
          return;
        case "malformed":
          callback({
            code: status.INVALID_ARGUMENT,
            details: `the request is ${result.message}`,
          });
          return;
        case "cancelled":
          callback({ code: status.CANCELLED, details: "cancelled" });
      }
    } finally {
      call.off("cancelled", cancel);
      open.delete(scope);
    }
  }

  return {
    handle: (call, callback) => void answer(call, callback),
    cancelAll() {
      for (const scope of open) scope.cancel();
    },
  };
}

/**
 * Corrects four of grpc-js's statuses: a request that is too large names the flag, a deadline that
 * is none and a compressed message are the caller's mistakes, and a handler never says
 * UNIMPLEMENTED, upon which Crossplane would call the other service with the same.
 */
export const clearStatuses: ServerInterceptor = (_method, call) => {
  // grpc-js ends a call by its own sendStatus, which no interceptor's responder sees.
  const send = call.sendStatus.bind(call);
  call.sendStatus = (original) => {
    const details = original.details;
    if (
      original.code === status.RESOURCE_EXHAUSTED &&
      details.startsWith("Received message")
    ) {
      return send({
        ...original,
        details: `${details}: raise --max-recv-message-size`,
      });
    }
    if (details.startsWith(invalidTimeoutDetails)) {
      return send({
        ...original,
        code: status.INVALID_ARGUMENT,
        details: expectedTimeout,
      });
    }
    if (details === compressedDetails) {
      return send({
        ...original,
        code: status.INVALID_ARGUMENT,
        details: expectedEncoding,
      });
    }
    if (original.code === status.UNIMPLEMENTED) {
      return send({ ...original, code: status.INVALID_ARGUMENT });
    }
    return send(original);
  };
  // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- grpc-js calls what its own `call` has, too; a layer around it costs every request and adds nothing
  return call as ServerInterceptingCall;
};

/** grpc-js gives a deadline as wall-clock time. */
function deadlineAtMs(call: RawUnaryCall, clock: Clock): number {
  const deadline = call.getDeadline();
  const atMs = typeof deadline === "number" ? deadline : deadline.getTime();
  return clock.monotonicMs() + (atMs - clock.nowMs());
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
