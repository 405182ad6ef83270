import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

import {
  Client,
  credentials,
  type ChannelCredentials,
  type ServiceError,
} from "@grpc/grpc-js";

import { ECHO_SMALL } from "../echo-methods.js";
import { ascending } from "../percentile.js";
import { SERVER_NAME, type Identity } from "./identities.js";

/** How long answers took, ascending. */
export interface ProbeFigures {
  readonly healthUs: readonly number[];
  /** Of a server with nothing else to do: the share of this client and of the machine. */
  readonly echoUs: readonly number[];
  /** Health checks that failed or did not say SERVING. */
  readonly errors: number;
}

/** Whom to ask, and for how long. */
export interface ProbeOptions {
  readonly address: string;
  readonly identity: Identity;
  readonly echoAddress: string;
  readonly durationMs: number;
}

const HEALTH_CHECK = "/grpc.health.v1.Health/Check";
/** A HealthCheckResponse of SERVING. */
const SERVING = Buffer.from([8, 1]);
const EVERY_MS = 20;
const DEADLINE_MS = 5_000;

/**
 * Asks the gRPC health service of the function, and a bare echo server, at one cadence, whether
 * earlier answers have come or not: who waits for them never asks while it is slow.
 */
export async function probeHealth(
  options: ProbeOptions,
): Promise<ProbeFigures> {
  const health = new Client(
    options.address,
    await clientTls(options.identity),
    {
      "grpc.ssl_target_name_override": SERVER_NAME,
    },
  );
  const echo = new Client(options.echoAddress, credentials.createInsecure());
  try {
    // To connect is not what is timed.
    await Promise.all([ask(health, HEALTH_CHECK), ask(echo, ECHO_SMALL)]);
    const answers: Promise<Answer>[] = [];
    const echoes: Promise<Answer>[] = [];
    const endAtMs = performance.now() + options.durationMs;
    while (performance.now() < endAtMs) {
      answers.push(ask(health, HEALTH_CHECK));
      echoes.push(ask(echo, ECHO_SMALL));
      await delay(EVERY_MS);
    }
    const all = await Promise.all(answers);
    return {
      healthUs: ascending(all.map(({ elapsedUs }) => elapsedUs)),
      echoUs: ascending(
        (await Promise.all(echoes)).map(({ elapsedUs }) => elapsedUs),
      ),
      errors: all.filter(({ bytes }) => bytes?.equals(SERVING) !== true).length,
    };
  } finally {
    health.close();
    echo.close();
  }
}

async function clientTls({ client }: Identity): Promise<ChannelCredentials> {
  const [ca, key, cert] = await Promise.all(
    [client.ca, client.key, client.cert].map((file) => readFile(file)),
  );
  // OpenSSL takes Crossplane's certificates for self-signed; the Go client, which makes the load,
  // verifies them.
  return credentials.createSsl(ca, key, cert, { rejectUnauthorized: false });
}

interface Answer {
  readonly elapsedUs: number;
  /** `null` when the call failed. */
  readonly bytes: Buffer | null;
}

function ask(client: Client, method: string): Promise<Answer> {
  return new Promise((resolve) => {
    const startedMs = performance.now();
    client.makeUnaryRequest<Buffer, Buffer>(
      method,
      (bytes) => bytes,
      (bytes) => bytes,
      Buffer.alloc(0),
      { deadline: Date.now() + DEADLINE_MS },
      (error: ServiceError | null, bytes) => {
        const elapsedUs = Math.round((performance.now() - startedMs) * 1000);
        resolve({ elapsedUs, bytes: error === null ? (bytes ?? null) : null });
      },
    );
  });
}
