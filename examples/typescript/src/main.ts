/** The exports of wit/world.wit: bytes in, bytes out. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import log from "log";

import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
} from "../gen/run_function_pb.js";
import { runFunction } from "./greeter.js";

export function run(request: Uint8Array): Uint8Array {
  try {
    const response = runFunction(
      fromBinary(RunFunctionRequestSchema, request),
      log,
    );
    return toBinary(RunFunctionResponseSchema, response);
  } catch (error) {
    throw new RunError(error instanceof Error ? error.message : String(error));
  }
}

/** What componentize-js turns into the `err` of the world's result: its `payload`. */
class RunError extends Error {
  readonly payload: string;

  constructor(payload: string) {
    super(payload);
    this.payload = payload;
  }
}
