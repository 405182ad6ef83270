import {
  create,
  toBinary,
  type JsonObject,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

import {
  createAdmission,
  type Admission,
  type AdmissionOptions,
} from "../../../src/admission/index.js";
import type { Engine, RunRequest } from "../../../src/engine/index.js";
import {
  createRunFunction,
  type RunFunctionOptions,
} from "../../../src/function/run-function.js";
import { bytesField } from "../../../src/function/wire.js";
import {
  RunFunctionRequestSchema,
  RunFunctionResponseSchema,
} from "../../../src/gen/run_function_pb.js";
import { type Loader } from "../../../src/loader/index.js";
import { localModule } from "../../support/engine.js";
import { recordingLogger } from "../../support/recorded-log.js";
import { sourceParsers } from "../../support/source-parsers.js";
import type {
  Clock,
  ManifestBytes,
  Metrics,
  ModuleFile,
  RequestScope,
} from "../../../src/ports.js";
import { createRequestScope } from "../../../src/request-scope.js";
import { fakePolicyEngine } from "../admission/policy/fixtures.js";

export { recordingLogger, type LogLine } from "../../support/recorded-log.js";

export const realClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
};

const greeter: ModuleFile = {
  digest: `sha256:${"0".repeat(64)}`,
  filePath: "/modules/greeter.wasm",
  sizeBytes: 1,
  description: "Path greeter.wasm",
};

export interface FakeEngine extends Engine {
  readonly runs: RunRequest[];
  readonly released: () => number;
}

/** An engine whose runs are `run`; it remembers what it was asked. */
export function fakeEngine(
  run: (request: RunRequest, scope: RequestScope) => Promise<Uint8Array>,
): FakeEngine {
  const runs: RunRequest[] = [];
  let released = 0;
  return {
    runs,
    released: () => released,
    load: (module) =>
      Promise.resolve({
        digest: module.digest,
        description: module.description,
        abi: 1,
        release() {
          released++;
        },
      }),
    run(_lease, request, scope) {
      runs.push(request);
      return run(request, scope);
    },
    compiledDir: "/cache/compiled/0",
    close: () => Promise.resolve(),
  };
}

/** A scope without deadline or cancellation. */
export function openScope(): RequestScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}

/** A loader that finds the greeter whatever it is asked for, with or without a manifest. */
export function fakeLoader(manifest: ManifestBytes | null = null): Loader {
  return {
    resolve: () =>
      Promise.resolve({
        module: localModule(greeter),
        manifestDigest: null,
        warning: null,
        readManifest: () => Promise.resolve(manifest),
      }),
    usedSince: () => [],
    directories: () => [],
    close: () => Promise.resolve(),
  };
}

/** The real admission, with a policy engine that permits everything. */
export function testAdmission(
  overrides: Partial<AdmissionOptions> = {},
): Admission {
  return createAdmission({
    ceilings: {
      timeoutMs: 1000,
      timeoutText: "1s",
      memoryBytes: 65536,
      memoryText: "64Ki",
      moduleDirSet: true,
      allowUnpinnedTags: false,
    },
    parsers: sourceParsers,
    engine: fakePolicyEngine(),
    operatorPolicy: () => null,
    ...overrides,
  });
}

/** Counters that remember what they were told. */
export function recordingMetrics(): Metrics & { readonly counted: string[] } {
  const counted: string[] = [];
  return {
    counted,
    requestEnded: (outcome) => counted.push(outcome),
    policyReloaded: (result) => counted.push(`reload ${result}`),
    certificatesReloaded: (result) => counted.push(`certificates ${result}`),
    compiledLookedUp: (event) => counted.push(`compiled ${event}`),
    artifactLookedUp: (event) => counted.push(`artifact ${event}`),
    compileEnded: (seconds) => counted.push(`compile ${seconds}`),
    moduleLoaded: (abi) => counted.push(`loaded ${abi}`),
    runQueued: (seconds) => counted.push(`queued ${seconds}`),
    runsInFlight: (count) => counted.push(`running ${count}`),
    runEnded: (outcome, seconds) => counted.push(`run ${outcome} ${seconds}`),
    memoryDenied: (reason, count) => counted.push(`denied ${reason} ${count}`),
    moduleFetched: (source) => counted.push(`fetched ${source}`),
    tagResolved: (source) => counted.push(`tag ${source}`),
    blobLookedUp: (event) => counted.push(`blob ${event}`),
    cacheSwept: (cache) => counted.push(`swept ${cache}`),
    clientRefused: (refusal) => counted.push(`client ${refusal}`),
  };
}

/** The pipeline around `engine`, everything else real enough to let a request through. */
export function pipelineAround(
  engine: Engine,
  overrides: Partial<RunFunctionOptions> = {},
): ReturnType<typeof createRunFunction> {
  return createRunFunction({
    admission: testAdmission(),
    loader: fakeLoader(),
    engine,
    ttlNanos: 60_500_000_000n,
    clock: realClock,
    logger: recordingLogger().logger,
    metrics: recordingMetrics(),
    ...overrides,
  });
}

export const greeterInput: JsonObject = {
  apiVersion: "wasm.fn.crossplane.io/v1",
  kind: "Input",
  module: { type: "Path", path: "greeter.wasm" },
};

/** RunFunctionRequest bytes. */
export function requestBytes(
  init: MessageInitShape<typeof RunFunctionRequestSchema> = {
    meta: { tag: "a-tag" },
    input: greeterInput,
  },
): Uint8Array {
  return toBinary(
    RunFunctionRequestSchema,
    create(RunFunctionRequestSchema, init),
  );
}

/** RunFunctionResponse bytes. */
export function responseBytes(
  init: MessageInitShape<typeof RunFunctionResponseSchema>,
): Uint8Array {
  return toBinary(
    RunFunctionResponseSchema,
    create(RunFunctionResponseSchema, init),
  );
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** A Struct `{"a": {"a": …}}` whose encoding `levels` objects deep no decoder follows. */
export function deepStruct(levels: number): Uint8Array {
  const key = bytesField(1, new TextEncoder().encode("a"));
  // From the inside out; sizes first, so that the bytes are written once.
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (let level = 0; level < levels; level++) {
    const inner = length;
    const structTag = head(5, inner);
    const valueTag = head(2, structTag.length + inner);
    const entryTag = head(
      1,
      key.length + valueTag.length + structTag.length + inner,
    );
    const prefix = concat(entryTag, key, valueTag, structTag);
    chunks.push(prefix);
    length += prefix.length;
  }
  return concat(...chunks.reverse());
}

function head(fieldNumber: number, length: number): Uint8Array {
  return new BinaryWriter()
    .tag(fieldNumber, WireType.LengthDelimited)
    .uint32(length)
    .finish();
}
