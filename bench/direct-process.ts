import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What `direct.ts` is started with. */
export interface DirectOptions {
  readonly modulePath: string;
  readonly requestFile: string;
  readonly cacheDir: string;
  /** `null`: trust the cache directory instead. */
  readonly artifactKeyFile: string | null;
}

/** A process that runs one module through the engine alone. */
export interface DirectProcess {
  /** How long the engine took to load the module, in a fresh process. */
  readonly loadUs: number;
  /** Runs it `count` times, one after the other; microseconds of each. */
  run(count: number): Promise<readonly number[]>;
  stop(): Promise<void>;
}

/**
 * Starts it and loads the module.
 * @throws Error when the process ends before it answers
 */
export async function startDirect(
  options: DirectOptions,
): Promise<DirectProcess> {
  const program = fileURLToPath(new URL("./direct.ts", import.meta.url));
  const child = spawn(
    process.execPath,
    ["--import", "tsx", program, JSON.stringify(options)],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  const exited = once(child, "exit");
  const lines = createInterface({ input: child.stdout })[
    Symbol.asyncIterator
  ]();

  async function answer<T>(): Promise<T> {
    const line: IteratorResult<string, undefined> = await lines.next();
    if (line.value === undefined) {
      throw new Error("the direct process ended without an answer");
    }
    return JSON.parse(line.value) as T;
  }

  const { loadUs } = await answer<{ loadUs: number }>();
  return {
    loadUs,
    async run(count) {
      child.stdin.write(`${count}\n`);
      return (await answer<{ samplesUs: number[] }>()).samplesUs;
    },
    async stop() {
      child.stdin.end();
      await exited;
    },
  };
}
