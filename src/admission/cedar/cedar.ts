import { readFile } from "node:fs/promises";

import type * as CedarWasm from "@cedar-policy/cedar-wasm";

import { withMemoryMaximum } from "./wasm-memory.js";

/** What is used of Cedar. Whatever throws has left it unusable: see {@link loadCedar}. */
export type Cedar = Pick<
  typeof CedarWasm,
  | "policySetTextToParts"
  | "policyToJson"
  | "preparsePolicySet"
  | "statefulIsAuthorized"
  | "validate"
>;

/** An instance of Cedar. */
export interface LoadedCedar {
  readonly cedar: Cedar;
  readonly memoryBytes: () => number;
}

const mebibyte = 1024 * 1024;
const pageBytes = 64 * 1024;

/** How much Cedar may take. */
export interface CedarLimits {
  readonly memoryBytes: number;
  /** One answer, which may quote the policy and have an error for every character of it. */
  readonly answerBytes: number;
}

/**
 * Without these, a megabyte of nothing but `;` takes more than two gigabytes, and an answer too long
 * for the heap of its thread ends the whole process.
 */
const defaultLimits: CedarLimits = {
  memoryBytes: 384 * mebibyte,
  answerBytes: 16 * mebibyte,
};

/**
 * Makes the instance of Cedar that this thread has; a second one would find the first one's memory in
 * the glue.
 *
 * Cedar overflows its stack on text that nests deeply, and runs out of memory on some that is long.
 * Both throw out of the middle of it, and an instance that this happened to throws for ever after.
 */
export async function loadCedar(limits = defaultLimits): Promise<LoadedCedar> {
  const packageUrl = import.meta.resolve("@cedar-policy/cedar-wasm");
  const glueUrl = new URL("cedar_wasm_bg.js", packageUrl);
  const glue = (await import(glueUrl.href)) as Glue;
  const binary = await readFile(new URL("cedar_wasm_bg.wasm", packageUrl));
  const { Instance, Module } = webAssembly;
  const { exports } = new Instance(
    new Module(withMemoryMaximum(binary, limits.memoryBytes / pageBytes)),
    {
      "./cedar_wasm_bg.js": {
        ...glue,
        ...boundedParse(glue, limits.answerBytes),
      },
    },
  );
  glue.__wbg_set_wasm(exports);
  exports.__wbindgen_start();
  return { cedar: glue, memoryBytes: () => exports.memory.buffer.byteLength };
}

/** Cedar's answers are JSON, and leave its memory through the glue's one import that parses it. */
function boundedParse(
  glue: Glue,
  maxBytes: number,
): Record<string, ParseImport> {
  const imports = Object.entries(glue as unknown as Record<string, unknown>);
  const [name, parse] =
    imports.find(([key]) => key.startsWith("__wbg_parse_")) ?? [];
  if (name === undefined)
    throw new Error("expected cedar-wasm to import JSON.parse");
  return {
    [name](pointer, lengthBytes) {
      if (lengthBytes > maxBytes)
        throw new RangeError("Cedar's answer is too long");
      return (parse as ParseImport)(pointer, lengthBytes);
    },
  };
}

type ParseImport = (pointer: number, lengthBytes: number) => unknown;

/** The module between Cedar and JavaScript, as far as its package's types do not say. */
type Glue = typeof CedarWasm & {
  __wbg_set_wasm(exports: CedarExports): void;
};

interface CedarExports {
  readonly memory: { readonly buffer: ArrayBuffer };
  __wbindgen_start(): void;
}

/** What is used of an interface that only the types for browsers describe. */
interface WebAssemblyApi {
  readonly Module: new (binary: Uint8Array) => object;
  readonly Instance: new (
    module: object,
    imports: Record<string, object>,
  ) => { readonly exports: CedarExports };
}

const { WebAssembly: webAssembly } = globalThis as unknown as {
  readonly WebAssembly: WebAssemblyApi;
};
