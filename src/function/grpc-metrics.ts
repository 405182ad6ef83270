import {
  status,
  type ServerInterceptingCall,
  type ServerInterceptor,
  type ServiceDefinition,
} from "@grpc/grpc-js";
import type { Registry } from "prom-client";

import { metricMakers } from "./metric-makers.js";

/** What is counted of gRPC, as go-grpc-prometheus does, which functions in Go use. */
export interface GrpcMetrics {
  /** Makes the series of the service's methods. Calls of other methods are not counted. */
  addService(service: ServiceDefinition): void;
  /**
   * Counts calls. To be the first of all interceptors: the last one to see a status is the first
   * one that was put around the call.
   */
  readonly countCalls: ServerInterceptor;
}

/** The names of Go, by code. */
const codeNames = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];

const methodLabels = ["grpc_type", "grpc_service", "grpc_method"] as const;

interface MethodCounters {
  readonly started: () => void;
  readonly received: () => void;
  readonly sent: () => void;
  readonly handled: (code: number) => void;
}

/** Adds the metrics of calls, without series until a service is added. */
export function addGrpcMetrics(registry: Registry): GrpcMetrics {
  const make = metricMakers(registry);
  const started = make.counter({
    name: "grpc_server_started_total",
    help: "Calls that came in.",
    labels: methodLabels,
  });
  const handled = make.counter({
    name: "grpc_server_handled_total",
    help: "Calls that ended, by their status.",
    labels: [...methodLabels, "grpc_code"],
  });
  const received = make.counter({
    name: "grpc_server_msg_received_total",
    help: "Messages that came in.",
    labels: methodLabels,
  });
  const sent = make.counter({
    name: "grpc_server_msg_sent_total",
    help: "Messages that went out.",
    labels: methodLabels,
  });
  const methods = new Map<string, MethodCounters>();

  return {
    addService(service) {
      for (const method of Object.values(service)) {
        const [, grpc_service = "", grpc_method = ""] = method.path.split("/");
        const grpc_type = typeOf(method);
        const labels = { grpc_type, grpc_service, grpc_method };
        const byCode = codeNames.map((grpc_code) =>
          handled({ ...labels, grpc_code }),
        );
        methods.set(method.path, {
          started: started(labels),
          received: received(labels),
          sent: sent(labels),
          handled: (code) => (byCode[code] ?? byCode[status.UNKNOWN])?.(),
        });
      }
    },
    countCalls({ path }, call) {
      const counters = methods.get(path);
      if (counters !== undefined) countCall(call, counters);
      // eslint-disable-next-line @typescript-eslint/no-unsafe-class-instance-assignment -- as for clearStatuses of service.ts
      return call as ServerInterceptingCall;
    },
  };
}

type Call = Parameters<ServerInterceptor>[1];

/**
 * In place, for grpc-js ends a call by its own sendStatus, which no interceptor's responder sees;
 * and with `call` instead of `bind`, which takes four times as long as all the rest here.
 */
function countCall(call: Call, counters: MethodCounters): void {
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called on what they were taken from
  const { start, sendMessage, sendStatus } = call;
  let hasEnded = false;
  const end = (code: number) => {
    if (hasEnded) return;
    hasEnded = true;
    counters.handled(code);
  };
  counters.started();
  call.start = (listener) => {
    // eslint-disable-next-line @typescript-eslint/unbound-method -- as above
    const { onReceiveMessage, onCancel } = listener;
    listener.onReceiveMessage = (message) => {
      counters.received();
      onReceiveMessage.call(listener, message);
    };
    // Comes after every call's end; after its status nothing is left to count.
    listener.onCancel = () => {
      end(status.CANCELLED);
      onCancel.call(listener);
    };
    start.call(call, listener);
  };
  call.sendMessage = (message, callback) => {
    counters.sent();
    sendMessage.call(call, message, callback);
  };
  call.sendStatus = (sent) => {
    end(sent.code);
    sendStatus.call(call, sent);
  };
}

function typeOf(method: ServiceDefinition[string]): string {
  if (method.requestStream)
    return method.responseStream ? "bidi_stream" : "client_stream";
  return method.responseStream ? "server_stream" : "unary";
}
