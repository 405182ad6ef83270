/**
 * A bare grpc-js server with raw bytes and no logic: the least that a gRPC server in Node costs.
 * Runs as a process of its own and says where it listens as the function does.
 */
import {
  Server,
  ServerCredentials,
  type handleUnaryCall,
  type ServiceDefinition,
} from "@grpc/grpc-js";

import { ECHO_SMALL, ECHO_WHOLE } from "./echo-methods.js";

const MAX_REQUEST_BYTES = 64 * 1024 * 1024;
const smallAnswer = Buffer.from("0a080a06633066666565", "hex");

const bytes = (value: Buffer): Buffer => value;

function unary(path: string): ServiceDefinition[string] {
  return {
    path,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  };
}

const whole: handleUnaryCall<Buffer, Buffer> = (call, callback) => {
  callback(null, call.request);
};
const small: handleUnaryCall<Buffer, Buffer> = (_call, callback) => {
  callback(null, smallAnswer);
};

const server = new Server({
  "grpc.max_receive_message_length": MAX_REQUEST_BYTES,
});
server.addService(
  { whole: unary(ECHO_WHOLE), small: unary(ECHO_SMALL) },
  { whole, small },
);
server.bindAsync(
  "127.0.0.1:0",
  ServerCredentials.createInsecure(),
  (error, port) => {
    if (error !== null) throw error;
    console.error(
      JSON.stringify({
        msg: "listening",
        address: `127.0.0.1:${port}`,
      }),
    );
  },
);
process.once("SIGTERM", () => {
  server.forceShutdown();
});
