import { setImmediate } from "node:timers/promises";

import { vi, type Mock } from "vitest";

import type {
  NativeEngine,
  NativeModule,
  RunFailure,
  RunReport,
} from "../../../src/engine/native.js";
import type { Digest, ModuleFile } from "../../../src/ports.js";
import { localModule, type LocalModule } from "../../support/engine.js";

/**
 * What {@link useFakeTime} fakes: timers and both clocks, so that `clock` of test/support tells the
 * faked time. `setImmediate` stays real.
 */
const FAKED = [
  "setTimeout",
  "clearTimeout",
  "setInterval",
  "clearInterval",
  "Date",
  "performance",
] as const;

/** Stops time until the test moves it on; ended by `vi.useRealTimers()`. */
export function useFakeTime(): void {
  vi.useFakeTimers({ toFake: [...FAKED] });
}

/** Lets everything happen that needs no time. */
export async function settle(): Promise<void> {
  await setImmediate();
}

/** The digest that ends in `n`. */
export function digestOf(n: number): Digest {
  return `sha256:${n.toString(16).padStart(64, "0")}`;
}

/** A module file called `Path m<n>.wasm`, that nobody reads. */
export function moduleFile(
  n: number,
  overrides: Partial<ModuleFile> = {},
): LocalModule {
  return localModule({
    digest: digestOf(n),
    filePath: `/modules/m${n}.wasm`,
    sizeBytes: 1000,
    description: `Path m${n}.wasm`,
    ...overrides,
  });
}

/** A compiled module that counts how often it is disposed of. */
export interface FakeModule extends NativeModule {
  readonly dispose: Mock<() => void>;
}

export function fakeModule(abi = 1): FakeModule {
  return { abi, pooled: true, dispose: vi.fn<() => void>() };
}

/** A sandbox that writes down what it is asked; whoever made it says when a run is done. */
export interface FakeNative extends NativeEngine {
  readonly run: Mock<NativeEngine["run"]>;
  readonly cancel: Mock<NativeEngine["cancel"]>;
}

export function fakeNative(overrides: Partial<FakeNative> = {}): FakeNative {
  const notHere = () => Promise.reject(new Error("not here"));
  return {
    compatibilityHash: "hash",
    pooled: true,
    seal: notHere,
    load: notHere,
    run: vi.fn<NativeEngine["run"]>(),
    cancel: vi.fn<NativeEngine["cancel"]>(),
    remainingMs: () => Infinity,
    close: () => undefined,
    ...overrides,
  };
}

/** What the sandbox reports of a run that logged nothing. */
export function reportOf(part: Partial<RunReport> = {}): RunReport {
  return {
    lines: [],
    droppedLines: 0,
    computeMs: 1,
    peakMemoryBytes: 65536,
    memoryDenials: 0,
    ...part,
  };
}

/** What the sandbox reports of a run that failed. */
export function failed(
  kind: RunFailure["kind"],
  detail = "what happened",
  backtrace = "",
): RunReport {
  return reportOf({ failure: { kind, detail, backtrace } });
}

/** A promise and how to settle it. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((onValue, onError) => {
    resolve = onValue;
    reject = onError;
  });
  return { promise, resolve, reject };
}
