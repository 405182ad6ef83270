import {
  status,
  type handleServerStreamingCall,
  type handleUnaryCall,
  type Server,
} from "@grpc/grpc-js";
import { HealthImplementation } from "grpc-health-check";

/** What gRPC health checks are told. */
export interface Health {
  /** Of every service. */
  set(state: HealthState): void;
}

export type HealthState = "NOT_SERVING" | "SERVING";

interface Question {
  readonly service: string;
}

interface Answer {
  readonly status: HealthState | "SERVICE_UNKNOWN";
}

/**
 * Adds the health service, NOT_SERVING, to a server. The library is asked about `services` and the
 * server as a whole only: it keeps the name of whatever else was watched, for ever.
 */
export function addHealth(
  server: Pick<Server, "addService">,
  services: readonly string[],
): Health {
  const names = new Set(["", ...services]);
  const health = new HealthImplementation();
  const set = (state: HealthState): void => {
    for (const name of names) health.setStatus(name, state);
  };
  set("NOT_SERVING");
  health.addToServer({
    addService(service, implementation) {
      const known = implementation as typeof implementation & {
        check: handleUnaryCall<Question, Answer>;
        watch: handleServerStreamingCall<Question, Answer>;
      };
      const check: typeof known.check = (call, callback) => {
        if (names.has(call.request.service)) known.check(call, callback);
        else callback({ code: status.NOT_FOUND, details: "no such service" });
      };
      const watch: typeof known.watch = (call) => {
        if (names.has(call.request.service)) known.watch(call);
        else call.write({ status: "SERVICE_UNKNOWN" });
      };
      server.addService(service, { ...implementation, check, watch });
    },
  });
  return { set };
}
