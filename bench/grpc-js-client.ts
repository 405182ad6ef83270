import { readFile } from "node:fs/promises";

import { Client, credentials, status, type ServiceError } from "@grpc/grpc-js";

import type {
  LoadClient,
  LoadPlan,
  LoadTarget,
  TargetResult,
} from "./load-client.js";
import { ascending } from "./percentile.js";

const PATHS: Readonly<Record<string, string>> = {
  v1: "/apiextensions.fn.proto.v1.FunctionRunnerService/RunFunction",
  v1beta1: "/apiextensions.fn.proto.v1beta1.FunctionRunnerService/RunFunction",
};

/**
 * The load client for machines without Go. Its own ceiling, some thousands of calls a second,
 * limits every number it measures.
 */
export function createGrpcJsClient(): LoadClient {
  return {
    name: "grpc-js",
    async load(plan) {
      const drivers = await Promise.all(
        plan.targets.map((target) => createDriver(target, plan.deadlineMs)),
      );
      try {
        return await drive(plan, drivers);
      } finally {
        for (const driver of drivers) driver.close();
      }
    },
  };
}

interface Driver {
  round(calls: number, concurrency: number, stopAtMs: number): Promise<void>;
  /** Drops what a warm-up measured. */
  forget(): void;
  result(): TargetResult;
  close(): void;
}

async function drive(
  plan: LoadPlan,
  drivers: readonly Driver[],
): Promise<readonly TargetResult[]> {
  const stopAtMs = performance.now() + plan.maxDurationMs;
  for (const driver of drivers) {
    await driver.round(plan.warmupCalls, plan.concurrency, stopAtMs);
    driver.forget();
  }
  for (let round = 0; round < plan.rounds; round++) {
    for (const driver of drivers)
      await driver.round(plan.roundCalls, plan.concurrency, stopAtMs);
  }
  return drivers.map((driver) => driver.result());
}

async function createDriver(
  target: LoadTarget,
  deadlineMs: number,
): Promise<Driver> {
  const client = new Client(target.address, credentials.createInsecure());
  const path = PATHS[target.method] ?? target.method;
  const request = await readFile(target.requestFile);
  let codes: Record<string, number> = {};
  let samplesUs: number[] = [];
  let firstError = "";
  let firstAnswer: Buffer | null = null;
  let differentAnswers = 0;
  let differentSizes = 0;
  let wallMs = 0;

  function record(
    error: ServiceError | null,
    answer: Buffer,
    startedMs: number,
  ): void {
    samplesUs.push(Math.round((performance.now() - startedMs) * 1000));
    const code = error === null ? "OK" : status[error.code];
    codes[code] = (codes[code] ?? 0) + 1;
    if (error !== null) firstError ||= error.details;
    else if (firstAnswer === null) firstAnswer = answer;
    else if (!firstAnswer.equals(answer)) {
      differentAnswers++;
      if (firstAnswer.length !== answer.length) differentSizes++;
    }
  }

  function call(): Promise<void> {
    return new Promise((resolve) => {
      const startedMs = performance.now();
      const options = { deadline: Date.now() + deadlineMs };
      client.makeUnaryRequest<Buffer, Buffer>(
        path,
        same,
        same,
        request,
        options,
        (error, answer) => {
          record(error, answer ?? Buffer.alloc(0), startedMs);
          resolve();
        },
      );
    });
  }

  return {
    async round(calls, concurrency, stopAtMs) {
      const startedMs = performance.now();
      let left = calls;
      const worker = async (): Promise<void> => {
        while (left-- > 0 && performance.now() < stopAtMs) await call();
      };
      await Promise.all(
        Array.from({ length: Math.min(concurrency, calls) }, worker),
      );
      wallMs += performance.now() - startedMs;
    },
    forget() {
      [codes, samplesUs, firstError] = [{}, [], ""];
      [differentAnswers, differentSizes, wallMs] = [0, 0, 0];
    },
    result: () => ({
      name: target.name,
      codes,
      firstError,
      firstAnswer,
      differentAnswers,
      differentSizes,
      requestsPerSecond: wallMs > 0 ? (samplesUs.length * 1000) / wallMs : 0,
      samplesUs: ascending(samplesUs),
    }),
    close() {
      client.close();
    },
  };
}

function same(bytes: Buffer): Buffer {
  return bytes;
}
