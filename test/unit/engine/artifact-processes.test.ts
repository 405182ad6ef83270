import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

import pLimit from "p-limit";
import {
  afterAll,
  beforeAll,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";

import { openArtifactStore } from "../../../src/engine/artifact-store.js";
import type { ModuleFile } from "../../../src/ports.js";
import {
  artifactPaths,
  clock,
  createLogCollector,
  messages,
  startEngine,
  writeModule,
  type TestEngineOptions,
} from "../../support/engine.js";
import { guest } from "../../support/guests.js";
import { slowModule } from "../../support/hostile-modules.js";
import { recordingMetrics } from "../function/fixtures.js";
import {
  killPrograms,
  runProgram,
  runUntilStopped,
  startProgram,
  stateOf,
} from "../loader/store/stopping-program.js";
import type { ArtifactJob, ArtifactStop } from "./artifact-process.js";

const PROGRAM = fileURLToPath(new URL("artifact-process.ts", import.meta.url));
const KEY = "hunter2 one".padEnd(32);
const OTHER_KEY = "hunter2 other".padEnd(32);
const HOUR_MS = 3_600_000;
const TRAILER_BYTES = 48;
/** No more than there are cores. */
const AT_ONCE = 2;
const PATIENCE_MS = 25_000;

let root: string;
let bytes: Uint8Array;
let module: ModuleFile;
/** Of what the compiler writes of it. */
let compiledBytes: number;
/** Which engine it is. */
let hash: string;

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "artifact-processes-test-"));
  bytes = await guest("v1/hello");
  module = await writeModule(root, "Path hello.wasm", bytes);
  const { run, files } = cache("whole");
  expect(await run(null)).toEqual({ abi: 1, warnings: [] });
  const [artifact] = await files();
  compiledBytes = (artifact?.sizeBytes ?? 0) - TRAILER_BYTES;
  hash = basename(join(artifact?.path ?? "", ".."));
});
afterAll(() => {
  killPrograms();
  rmSync(root, { recursive: true, force: true });
});

/** One cache directory, and what uses it. */
function cache(name: string) {
  const cacheDir = join(root, name, "cache");
  const jobOf = (stop: ArtifactStop | null): ArtifactJob => {
    return { cacheDir, key: KEY, module, stop };
  };
  return {
    cacheDir,
    artifactPath: () =>
      join(cacheDir, "compiled", hash, module.digest.replace(":", "-")),
    run: (stop: ArtifactStop | null) => runProgram(PROGRAM, jobOf(stop)),
    runUntil: (stop: ArtifactStop) => runUntilStopped(PROGRAM, jobOf(stop)),
    files: () => filesIn(cacheDir),
    call: (options: TestEngineOptions = {}) =>
      callOnce({ cacheDir, artifactKey: Buffer.from(KEY), ...options }),
    /** What a process does at its start, or does when it starts later. */
    sweep: (laterMs = 0) => {
      const { logger } = createLogCollector();
      const later = { ...clock, nowMs: () => clock.nowMs() + laterMs };
      openArtifactStore(cacheDir, hash, false, later, logger).close();
    },
  };
}

async function filesIn(cacheDir: string) {
  const isThere = existsSync(join(cacheDir, "compiled"));
  const paths = isThere ? await artifactPaths(cacheDir) : [];
  return paths.map((path) => ({
    kind: basename(path).startsWith(".tmp-") ? "leftover" : "artifact",
    path,
    sizeBytes: statSync(path).size,
  }));
}

/** One process's life: start, call the guest, end. */
async function callOnce(options: TestEngineOptions) {
  const metrics = recordingMetrics();
  const engine = await startEngine({ ...options, metrics });
  try {
    return {
      says: messages(await engine.call(bytes)),
      found: metrics.counted.filter((line) => line.startsWith("artifact ")),
      compiles: engine.compiles(),
      warnings: engine.lines.filter(({ level }) => level === "warn"),
    };
  } finally {
    await engine.close();
  }
}

const says = ["hello world"];
const reused = { says, found: ["artifact hit"], compiles: 0, warnings: [] };
const fresh = { says, found: ["artifact miss"], compiles: 1, warnings: [] };
const again = { says, found: ["artifact stale"], compiles: 1, warnings: [] };

interface Stopped {
  readonly name: string;
  readonly stop: ArtifactStop;
  /** Sizes of what is left, in bytes. */
  readonly left: () => readonly number[];
}

const half = 4096;
const UNNAMED: readonly Stopped[] = [
  {
    name: "the compiler has made its file",
    stop: { kind: "half-compiled", sizeBytes: 0 },
    left: () => [0],
  },
  {
    name: "the compiler has written a part",
    stop: { kind: "half-compiled", sizeBytes: half },
    left: () => [half],
  },
  {
    name: "the compiler has written all",
    stop: { kind: "compiled" },
    left: () => [compiledBytes],
  },
  {
    name: "a part of the seal is written",
    stop: { kind: "half-sealed", trailerBytes: 20 },
    left: () => [compiledBytes + 20],
  },
];
const STOPS: readonly Stopped[] = [
  ...[0, 1, 2].map((at) => ({
    name: `${at} of its directories are made`,
    stop: { kind: "directory" as const, at },
    left: () => [],
  })),
  ...UNNAMED,
  {
    name: "the seal is written",
    stop: { kind: "sealed" },
    left: () => [compiledBytes + TRAILER_BYTES],
  },
];

describe("engine/artifact-store after a process was killed", () => {
  /** By the name of the stop. */
  const leftBehind = new Map<string, Buffer>();

  beforeAll(async () => {
    const limit = pLimit(AT_ONCE);
    await Promise.all(
      STOPS.map(({ name, stop }) =>
        limit(async () => {
          const { runUntil, files } = cache(name);
          const stopped = await runUntil(stop);
          await stopped.kill();
          for (const { path } of await files())
            leftBehind.set(name, readFileSync(path));
        }),
      ),
    );
  });

  it.each(STOPS)(
    "when $name, what it left is not used, and the next one compiles",
    async ({ name, left }) => {
      const { files, call, sweep } = cache(name);
      const leftovers = async () =>
        (await files()).filter(({ kind }) => kind === "leftover");
      const sizes = (await files()).map(({ sizeBytes }) => sizeBytes);
      expect(sizes).toEqual(left());

      expect(await call()).toEqual(fresh);
      expect(await call()).toEqual(reused);

      // Somebody could be writing to it yet, until it is an hour old.
      expect(await leftovers()).toHaveLength(left().length);
      sweep(HOUR_MS + 1000);
      expect(await leftovers()).toEqual([]);
      expect(await call()).toEqual(reused);
    },
  );

  it("when the artifact has its name, the next one uses it", async () => {
    const { runUntil, files, call } = cache("renamed");
    const stopped = await runUntil({ kind: "renamed" });
    await stopped.kill();
    expect(await files()).toMatchObject([{ kind: "artifact" }]);

    expect(await call()).toEqual(reused);
  });

  it.each(
    UNNAMED.flatMap(({ name }) => [
      { name, trust: "a key", options: {} },
      {
        ...{ name, trust: "--trust-cache-dir" },
        options: { artifactKey: null, trustCacheDir: true },
      },
    ]),
  )(
    "what is there when $name is no artifact under an artifact's name, with $trust",
    async ({ name, trust, options }) => {
      const { artifactPath, call } = cache(`${name} ${trust}`);
      mkdirSync(join(artifactPath(), ".."), { recursive: true, mode: 0o700 });
      const content = leftBehind.get(name);
      expect(content).toBeDefined();
      writeFileSync(artifactPath(), content ?? "", { mode: 0o600 });

      expect(await call(options)).toEqual(again);
      expect(await call(options)).toEqual(reused);
    },
  );

  it("its compiler ends with it and leaves nothing", async () => {
    const { cacheDir, files, call } = cache("compiling");
    const slow = await writeModule(
      root,
      "Path slow.wasm",
      slowModule(2_000_000),
    );
    const server = startProgram(PROGRAM, {
      ...{ cacheDir, key: KEY, module: slow, stop: null },
    } satisfies ArtifactJob);
    const compiler = await vi.waitUntil(() => compilerOf(server.pid), {
      timeout: PATIENCE_MS,
      interval: 10,
    });
    process.kill(compiler, "SIGSTOP");
    onTestFinished(() => {
      if (stateOf(compiler) === "T") process.kill(compiler, "SIGKILL");
    });

    await server.kill();

    await vi.waitUntil(() => "ZX".includes(stateOf(compiler)), {
      timeout: PATIENCE_MS,
      interval: 10,
    });
    expect(await files()).toEqual([]);
    expect(await call()).toEqual(fresh);
  });
});

describe("engine/artifact-store with two processes at once", () => {
  it.each([
    {
      name: "is about to make their directory",
      stop: { kind: "directory", at: 0 },
      want: fresh,
    },
    { name: "has compiled", stop: { kind: "compiled" }, want: fresh },
    { name: "has put it in place", stop: { kind: "renamed" }, want: reused },
  ] as const)(
    "both load what both want when one $name",
    async ({ name, stop, want }) => {
      const { runUntil, files, call } = cache(`one ${name}`);
      const slow = await runUntil(stop);

      expect(await call()).toEqual(want);
      expect(await slow.goOn()).toEqual({ abi: 1, warnings: [] });

      expect(await files()).toMatchObject([{ kind: "artifact" }]);
      expect(await call()).toEqual(reused);
    },
  );

  it("one loads what it wants though the other takes its file for a leftover", async () => {
    const { runUntil, files, call, sweep } = cache("swept");
    const suspended = await runUntil({ kind: "compiled" });
    sweep();
    expect(await files()).toMatchObject([{ kind: "leftover" }]);

    sweep(HOUR_MS + 1000);
    expect(await files()).toEqual([]);

    const elsewhere =
      "cannot write to the cache directory, artifacts go to a temporary one";
    expect(await suspended.goOn()).toEqual({ abi: 1, warnings: [elsewhere] });
    expect(await files()).toEqual([]);
    expect(await call()).toEqual(fresh);
  });

  it("both load what both want when they have different keys", async () => {
    const { runUntil, files, call } = cache("keys");
    const slow = await runUntil({ kind: "renamed" });

    expect(await call({ artifactKey: Buffer.from(OTHER_KEY) })).toEqual(again);
    expect(await slow.goOn()).toEqual({ abi: 1, warnings: [] });

    expect(await files()).toMatchObject([{ kind: "artifact" }]);
  });
});

/** The process that compiles for `server`, once it has limits of its own: that it dies with it comes first. */
function compilerOf(server: number): number | undefined {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => {
      const read = (name: string) =>
        readFileSync(`/proc/${pid}/${name}`, "utf8");
      try {
        return (
          new RegExp(`^PPid:\\s+${server}$`, "m").test(read("status")) &&
          read("cmdline").includes('"compile"') &&
          /^Max cpu time +\d/m.test(read("limits"))
        );
      } catch {
        return false;
      }
    });
}
