import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import {
  afterEach,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from "vitest";

import type { ArtifactStore } from "../../../src/engine/artifact-store.js";
import type { Compiler } from "../../../src/engine/compiler.js";
import type {
  CompileFailure,
  CompilerOutcome,
} from "../../../src/engine/compiler-process.js";
import { EngineError } from "../../../src/engine/error.js";
import {
  createModuleLoader,
  type ModuleLoader,
} from "../../../src/engine/module-loader.js";
import {
  createModuleStore,
  type ModuleStore,
} from "../../../src/engine/module-store.js";
import type { ModuleKind, NativeEngine } from "../../../src/engine/native.js";
import { LoaderError } from "../../../src/loader/index.js";
import type { ModuleFile } from "../../../src/ports.js";
import {
  clock,
  createLogCollector,
  refusal,
  scope,
} from "../../support/engine.js";
import { recordingMetrics } from "../function/fixtures.js";
import {
  deferred,
  digestOf,
  fakeModule,
  fakeNative,
  moduleFile,
  settle,
  useFakeTime,
  type FakeModule,
} from "./fixtures.js";

const TEN_MINUTES_MS = 600_000;
const m1 = moduleFile(1);
const isCore: CompilerOutcome = { kind: "done", moduleKind: "core" };
const noModule: CompilerOutcome = { kind: "refused", text: "not a module" };

let store: ModuleStore;
beforeEach(useFakeTime);
afterEach(() => {
  store.close();
  vi.useRealTimers();
});

/**
 * A loader over a real store. Compiler and addon are doubles that keep artifacts by path, as the
 * real ones do; a test replaces what should go wrong.
 */
function setUp(maxModules = 0) {
  const written = new Set<string>();
  const sealed = new Map<string, ModuleKind>();
  let directory = "/cache";
  let temporaries = 0;
  const check = vi.fn<Compiler["check"]>(() => Promise.resolve(isCore));
  const seal = vi.fn<NativeEngine["seal"]>((path, kind, { filePath }) => {
    if (!written.delete(path)) throw new Error(`[io] no such file ${path}`);
    sealed.set(filePath, kind);
    return Promise.resolve(null);
  });
  const load = vi.fn<NativeEngine["load"]>(({ filePath }) => {
    const kind = sealed.get(filePath);
    return kind === undefined
      ? Promise.reject(new Error("[stale] there is no artifact"))
      : Promise.resolve(fakeModule(kind === "core" ? 1 : 2));
  });
  const compile = vi.fn<Compiler["compile"]>((_module, _kind, path) => {
    written.add(path);
    return Promise.resolve(null);
  });
  const fallBack = vi.fn<ArtifactStore["fallBack"]>(() => {
    directory = "/fallback";
  });
  const discard = vi.fn<ArtifactStore["discard"]>((path) => {
    written.delete(path);
    return Promise.resolve();
  });
  const artifacts: ArtifactStore = {
    get directory() {
      return directory;
    },
    pathOf: (digest) => `${directory}/${digest}`,
    temporaryPath: () => `${directory}/tmp-${temporaries++}`,
    discard,
    fallBack,
    close: () => undefined,
  };
  const native = fakeNative({ seal, load });
  const { logger, lines } = createLogCollector();
  const metrics = recordingMetrics();
  store = createModuleStore({ keepsIdle: true, maxModules }, clock);
  const loader = createModuleLoader({
    native,
    store,
    artifacts,
    compiler: { check, compile, close: () => undefined },
    clock,
    logger,
    metrics,
  });
  const calls = () => ({
    checks: check.mock.calls.length,
    compiles: compile.mock.calls.length,
    loads: load.mock.calls.length,
    seals: seal.mock.calls.length,
  });
  return {
    loader,
    check,
    seal,
    load,
    compile,
    fallBack,
    discard,
    sealed,
    written,
    lines,
    counted: metrics.counted,
    setDirectory: (path: string) => {
      directory = path;
    },
    calls,
  };
}

type Parts = ReturnType<typeof setUp>;

/** A compile that ends when the test says so. */
function slowCompile({ compile, written }: Parts) {
  const end = deferred<CompileFailure | null>();
  compile.mockImplementationOnce(async (_module, _kind, path) => {
    const failure = await end.promise;
    if (failure === null) written.add(path);
    return failure;
  });
  return end;
}

async function failure(loader: ModuleLoader, module = m1) {
  const { code, message } = await refusal(loader.load(module, scope()));
  return `${code}: ${message}`;
}

describe("engine/module-loader tiers", () => {
  it("checks, compiles, seals and maps a module that is nowhere yet", async () => {
    const parts = setUp();

    const lease = await parts.loader.load(m1, scope());

    const { digest } = m1;
    const artifact = { filePath: `/cache/${digest}`, digest };
    expect(lease.module.abi).toBe(1);
    const file = await m1.locate();
    expect(parts.check.mock.calls).toEqual([[file]]);
    expect(parts.compile.mock.calls).toEqual([[file, "core", "/cache/tmp-0"]]);
    expect(parts.seal.mock.calls).toEqual([["/cache/tmp-0", "core", artifact]]);
    expect(parts.load.mock.calls).toEqual([[artifact], [artifact]]);
    expect(parts.discard.mock.calls).toEqual([["/cache/tmp-0"]]);
  });

  it("compiles and maps a component as one", async () => {
    const parts = setUp();
    parts.check.mockResolvedValueOnce({
      kind: "done",
      moduleKind: "component",
    });

    const lease = await parts.loader.load(m1, scope());

    expect(lease.module.abi).toBe(2);
    expect(parts.compile.mock.lastCall?.[1]).toBe("component");
    expect(parts.seal.mock.lastCall?.[1]).toBe("component");
  });

  it("takes the artifact when there is one, without a look at the module", async () => {
    const parts = setUp();
    parts.sealed.set(`/cache/${m1.digest}`, "core");

    await parts.loader.load(m1, scope());

    expect(parts.calls()).toEqual({
      checks: 0,
      compiles: 0,
      loads: 1,
      seals: 0,
    });
    expect(parts.lines).toEqual([
      {
        level: "info",
        message: "module loaded",
        fields: { digest: m1.digest, elapsedMs: 0, pooled: true },
      },
    ]);
  });

  it("takes what is in memory without asking anybody", async () => {
    const parts = setUp();
    const first = await parts.loader.load(m1, scope());
    const before = parts.calls();

    const second = await parts.loader.load(moduleFile(1), scope());

    expect(second.module).toBe(first.module);
    expect(parts.calls()).toEqual(before);
  });

  it("takes what is in memory for a caller who has no time at all", async () => {
    const parts = setUp();
    await parts.loader.load(m1, scope());

    const lease = await parts.loader.load(m1, scope(-1, AbortSignal.abort()));

    expect(lease.module.abi).toBe(1);
  });

  it.each(["stale", "io", "internal"])(
    "compiles again what cannot be mapped: %s",
    async (code) => {
      const parts = setUp();
      parts.sealed.set(`/cache/${m1.digest}`, "core");
      parts.load.mockRejectedValueOnce(new Error(`[${code}] it is no good`));

      await parts.loader.load(m1, scope());

      expect(parts.calls().compiles).toBe(1);
      expect(parts.lines).toContainEqual({
        level: "debug",
        message: "no usable artifact",
        fields: {
          digest: m1.digest,
          reason: "it is no good",
        },
      });
    },
  );
});

describe("engine/module-loader metrics", () => {
  it("counts what is nowhere yet, and then what is in memory", async () => {
    const parts = setUp();

    await parts.loader.load(m1, scope());
    await parts.loader.load(m1, scope());

    expect(parts.counted).toEqual([
      ...["compiled miss", "artifact miss", "loaded 1", "compiled hit"],
    ]);
  });

  it("counts an artifact that is there, and a component as what it is", async () => {
    const parts = setUp();
    parts.sealed.set(`/cache/${m1.digest}`, "component");

    await parts.loader.load(m1, scope());

    expect(parts.counted).toEqual([
      ...["compiled miss", "loaded 2", "artifact hit"],
    ]);
  });

  it("counts an artifact of a module that cannot be run as there", async () => {
    const parts = setUp();
    parts.load.mockRejectedValueOnce(new Error("[invalid] unknown import"));

    await failure(parts.loader);

    expect(parts.counted).toEqual(["compiled miss", "artifact hit"]);
  });

  it.each(["stale", "io", "internal"])(
    "counts an artifact that is no good as stale: %s",
    async (code) => {
      const parts = setUp();
      const dir = mkdtempSync(join(tmpdir(), "module-loader-test-"));
      onTestFinished(() => {
        rmSync(dir, { recursive: true });
      });
      parts.setDirectory(dir);
      writeFileSync(join(dir, m1.digest), "");
      parts.load.mockRejectedValueOnce(new Error(`[${code}] it is no good`));

      await parts.loader.load(m1, scope());

      expect(parts.counted).toEqual([
        ...["compiled miss", "artifact stale", "loaded 1"],
      ]);
    },
  );

  it("counts once for a load in which somebody's fetch failed", async () => {
    const parts = setUp();
    const elsewhere = deferred<ModuleFile>();
    const other = { ...m1, locate: () => elsewhere.promise };

    const first = parts.loader.load(other, scope());
    const second = parts.loader.load(m1, scope());
    elsewhere.reject(new LoaderError("registry-auth-failed", "401"));
    await Promise.all([first, second]);

    expect(parts.counted).toEqual([
      ...["compiled miss", "compiled miss", "artifact miss", "loaded 1"],
    ]);
  });
});

describe("engine/module-loader single flight", () => {
  it("checks and compiles once for a hundred callers", async () => {
    const parts = setUp();

    const leases = await Promise.all(
      Array.from({ length: 100 }, () => parts.loader.load(m1, scope())),
    );

    expect(parts.calls()).toEqual({
      checks: 1,
      compiles: 1,
      loads: 2,
      seals: 1,
    });
    expect(new Set(leases.map(({ module }) => module)).size).toBe(1);
  });

  it("loads modules of different digests beside each other", async () => {
    const parts = setUp();
    const slow = deferred<CompilerOutcome>();
    parts.check.mockReturnValueOnce(slow.promise);

    const first = parts.loader.load(m1, scope());
    await Promise.all(
      [2, 3].map((n) => parts.loader.load(moduleFile(n), scope())),
    );
    expect(store.size).toBe(2);
    slow.resolve(isCore);

    await first;
    expect(store.size).toBe(3);
  });

  it("tells everybody in it why it failed, by the name each knows", async () => {
    const parts = setUp();
    parts.check.mockResolvedValueOnce(noModule);

    const messages = await Promise.all(
      ["Path a.wasm", "Path b.wasm"].map((description) =>
        failure(parts.loader, moduleFile(1, { description })),
      ),
    );

    expect(messages).toEqual([
      "module-invalid: module Path a.wasm cannot be loaded: not a module",
      "module-invalid: module Path b.wasm cannot be loaded: not a module",
    ]);
    expect(parts.calls().checks).toBe(1);
  });
});

describe("engine/module-loader full store", () => {
  it("loads once for all who wait when every place is leased", async () => {
    const parts = setUp(1);
    const held = await parts.loader.load(m1, scope());

    const leases = await Promise.all(
      Array.from({ length: 10 }, () =>
        parts.loader.load(moduleFile(2), scope()),
      ),
    );

    expect(parts.calls()).toMatchObject({ checks: 2, compiles: 2 });
    const modules = new Set(leases.map(({ module }) => module as FakeModule));
    expect(modules.size).toBe(1);
    await settle();
    for (const { dispose } of modules) expect(dispose).not.toHaveBeenCalled();
    for (const lease of leases) lease.release();
    expect(store.size).toBe(1);
    expect(store.lease(m1.digest)?.module).toBe(held.module);
  });

  it("does not keep what nobody waits for any more", async () => {
    const parts = setUp(1);
    await parts.loader.load(m1, scope());
    const end = slowCompile(parts);
    const gone = refusal(parts.loader.load(moduleFile(2), scope(10)));
    await vi.advanceTimersByTimeAsync(10);
    await gone;

    end.resolve(null);
    await settle();
    await settle();

    expect(parts.sealed.has(`/cache/${digestOf(2)}`)).toBe(true);
    expect(store.size).toBe(1);
  });

  it("lets two that push each other out both come to an end", async () => {
    const parts = setUp(1);

    const [a, b] = await Promise.all(
      [1, 2].map((n) => parts.loader.load(moduleFile(n), scope())),
    );

    expect(parts.calls().checks).toBe(2);
    expect(a?.module).not.toBe(b?.module);
  });
});

/** What makes a load fail, and what its caller is told. */
const permanent = [
  {
    name: "the pre-check refuses it",
    arrange: ({ check }: Parts) =>
      check.mockResolvedValueOnce({ kind: "refused", text: "no wasmfn_run" }),
    want: "module-invalid: module Path m1.wasm cannot be loaded: no wasmfn_run",
  },
  {
    name: "it exhausts the pre-check",
    arrange: ({ check }: Parts) =>
      check.mockResolvedValueOnce({
        kind: "exhausted",
        text: "it crashed the compiler (SIGSEGV)",
      }),
    want: "module-invalid: module Path m1.wasm cannot be loaded: it could not be checked: it crashed the compiler (SIGSEGV)",
  },
  {
    name: "the linker refuses it",
    arrange: ({ load, sealed }: Parts) => {
      sealed.set(`/cache/${m1.digest}`, "core");
      load.mockRejectedValueOnce(new Error("[invalid] unknown import"));
    },
    want: "module-invalid: module Path m1.wasm cannot be loaded: unknown import",
  },
  {
    name: "the compiler refuses it",
    arrange: ({ compile }: Parts) =>
      compile.mockResolvedValueOnce({ kind: "refused", text: "type mismatch" }),
    want: "module-invalid: module Path m1.wasm cannot be loaded: the compiler refused it: type mismatch",
  },
  {
    name: "it exhausts the compiler",
    arrange: ({ compile }: Parts) =>
      compile.mockResolvedValueOnce({
        kind: "exhausted",
        text: "it needs more than 23 CPU seconds",
      }),
    want: "compile-failed: module Path m1.wasm cannot be loaded: it could not be compiled: it needs more than 23 CPU seconds",
  },
];

const transient = [
  {
    name: "the file changed",
    arrange: ({ check }: Parts) =>
      check.mockResolvedValueOnce({
        kind: "changed",
        text: "the file changed",
      }),
    want: "module-changed: module Path m1.wasm cannot be loaded: the file changed",
  },
  {
    name: "the file cannot be read",
    arrange: ({ check }: Parts) =>
      check.mockResolvedValueOnce({ kind: "io", text: "permission denied" }),
    want: "load-failed: module Path m1.wasm cannot be loaded: permission denied",
  },
  {
    name: "too many checks wait",
    arrange: ({ check }: Parts) =>
      check.mockResolvedValueOnce({
        kind: "unavailable",
        text: "too many modules wait to be compiled",
      }),
    want: "load-failed: module Path m1.wasm cannot be loaded: too many modules wait to be compiled",
  },
  {
    name: "the compiler fails in a way nobody thought of",
    arrange: ({ check }: Parts) =>
      check.mockRejectedValueOnce(new Error("it broke")),
    want: "load-failed: module Path m1.wasm cannot be loaded: it broke",
  },
  {
    name: "the file changed before the compile",
    arrange: ({ compile }: Parts) =>
      compile.mockResolvedValueOnce({ kind: "changed", text: "it changed" }),
    want: "module-changed: module Path m1.wasm cannot be loaded: it changed",
  },
  {
    name: "too many compiles wait",
    arrange: ({ compile }: Parts) =>
      compile.mockResolvedValueOnce({
        kind: "unavailable",
        text: "too many modules wait to be compiled",
      }),
    want: "load-failed: module Path m1.wasm cannot be loaded: too many modules wait to be compiled",
  },
  {
    name: "the compiler cannot read it",
    arrange: ({ compile }: Parts) =>
      compile.mockResolvedValueOnce({ kind: "io", text: "cannot open it" }),
    want: "load-failed: module Path m1.wasm cannot be loaded: cannot open it",
  },
  {
    name: "no directory takes the artifact",
    arrange: ({ compile }: Parts) =>
      compile
        .mockResolvedValueOnce({ kind: "unwritable", text: "no space left" })
        .mockResolvedValueOnce({
          kind: "unwritable",
          text: "none here either",
        }),
    want: "load-failed: module Path m1.wasm cannot be loaded: none here either",
  },
  {
    name: "there is no other directory",
    arrange: ({ compile, fallBack }: Parts) => {
      compile.mockResolvedValueOnce({ kind: "unwritable", text: "no space" });
      fallBack.mockImplementationOnce(() => {
        throw new EngineError("load-failed", "cannot store artifacts: EROFS");
      });
    },
    want: "load-failed: module Path m1.wasm cannot be loaded: cannot store artifacts: EROFS",
  },
  {
    name: "the fresh artifact does not verify",
    arrange: ({ load }: Parts) =>
      load
        .mockRejectedValueOnce(new Error("[stale] none"))
        .mockRejectedValueOnce(new Error("[stale] wrong MAC"))
        .mockRejectedValueOnce(new Error("[stale] wrong MAC")),
    want: "load-failed: module Path m1.wasm cannot be loaded: the artifact that was just compiled does not verify",
  },
];

describe("engine/module-loader failures", () => {
  it.each([...permanent, ...transient])(
    "says what happened when $name",
    async ({ arrange, want }) => {
      const parts = setUp();
      arrange(parts);

      expect(await failure(parts.loader)).toBe(want);

      expect(store.size).toBe(0);
    },
  );

  it.each(permanent)(
    "remembers for ten minutes, under any name, that $name",
    async ({ arrange, want }) => {
      const parts = setUp();
      arrange(parts);
      await failure(parts.loader);
      const before = parts.calls();

      await vi.advanceTimersByTimeAsync(TEN_MINUTES_MS - 1);
      const later = await failure(
        parts.loader,
        moduleFile(1, { description: "Path other.wasm" }),
      );

      expect(later).toBe(want.replace("m1.wasm", "other.wasm"));
      expect(parts.calls()).toEqual(before);
      await vi.advanceTimersByTimeAsync(2);
      await parts.loader.load(m1, scope());
      expect(parts.calls().loads).toBeGreaterThan(before.loads);
    },
  );

  it.each(transient)("tries again after $name", async ({ arrange }) => {
    const parts = setUp();
    arrange(parts);
    await failure(parts.loader);

    const lease = await parts.loader.load(m1, scope());

    expect(lease.module.abi).toBe(1);
  });

  it("remembers nothing of other modules", async () => {
    const parts = setUp();
    parts.check.mockResolvedValueOnce(noModule);
    await failure(parts.loader);

    const lease = await parts.loader.load(moduleFile(2), scope());

    expect(lease.module.abi).toBe(1);
  });

  it("tells a caller with no time left what is remembered, not to come again", async () => {
    const parts = setUp();
    parts.check.mockResolvedValueOnce(noModule);
    await failure(parts.loader);

    const error = await refusal(parts.loader.load(m1, scope(-1)));

    expect(error.code).toBe("module-invalid");
  });
});

describe("engine/module-loader bytes that are elsewhere", () => {
  /** A module whose bytes come when the test says so, if they come. */
  function remote(
    locate: () => Promise<ModuleFile>,
    description = m1.description,
  ) {
    const { digest } = m1;
    return { digest, description, locate: vi.fn(locate) };
  }
  const here = () => m1.locate();
  const gone = new LoaderError(
    "registry-unreachable",
    "cannot resolve module: module Path m1.wasm: no answer",
  );

  it("fetches nothing for what memory or disk has", async () => {
    const parts = setUp();
    parts.sealed.set(`/cache/${m1.digest}`, "core");
    const module = remote(() => Promise.reject(gone));

    const fromDisk = await parts.loader.load(module, scope());
    const fromMemory = await parts.loader.load(module, scope());

    expect(fromMemory.module).toBe(fromDisk.module);
    expect(module.locate).not.toHaveBeenCalled();
    expect(parts.calls()).toMatchObject({ checks: 0, compiles: 0, loads: 1 });
  });

  it("has everybody go his own way, and compiles once", async () => {
    const parts = setUp();
    const modules = Array.from({ length: 10 }, () => remote(here));

    await Promise.all(
      modules.map((module) => parts.loader.load(module, scope())),
    );

    for (const { locate } of modules) expect(locate).toHaveBeenCalledTimes(1);
    expect(parts.calls()).toMatchObject({ checks: 1, compiles: 1 });
  });

  it("passes on why they cannot be had as it is, and does not remember it", async () => {
    const parts = setUp();
    const module = remote(() => Promise.reject(gone));

    await expect(parts.loader.load(module, scope())).rejects.toBe(gone);
    await expect(parts.loader.load(module, scope())).rejects.toBe(gone);

    expect(module.locate).toHaveBeenCalledTimes(2);
    module.locate.mockImplementation(here);
    expect((await parts.loader.load(module, scope())).module.abi).toBe(1);
  });

  it("has nobody wait for another's fetch, however slow that is, and sends nobody once it is here", async () => {
    const parts = setUp();
    const never = deferred<ModuleFile>();
    const slow = remote(() => never.promise);
    const quick = remote(here);
    const end = slowCompile(parts);

    const first = parts.loader.load(slow, scope());
    await settle();
    const second = parts.loader.load(quick, scope());
    await settle();
    const late = remote(here);
    const third = parts.loader.load(late, scope());
    end.resolve(null);

    // The bytes are the same, whoever had them.
    for (const lease of await Promise.all([first, second, third]))
      expect(lease.module.abi).toBe(1);
    expect(late.locate).not.toHaveBeenCalled();
    expect(parts.calls()).toMatchObject({ checks: 1, compiles: 1 });
  });

  it("tells everybody his own failure and nobody another's", async () => {
    const parts = setUp();
    const errors = ["a", "b", "c"].map(
      (host) => new LoaderError("registry-auth-failed", `${host}: 401`),
    );
    const modules = errors.map((error) => remote(() => Promise.reject(error)));

    const outcomes = await Promise.allSettled(
      modules.map((module) => parts.loader.load(module, scope())),
    );

    expect(outcomes).toEqual(
      errors.map((reason) => ({ status: "rejected", reason })),
    );
    for (const { locate } of modules) expect(locate).toHaveBeenCalledTimes(1);
    expect(parts.calls().checks).toBe(0);
  });

  it("lets the failure of the bytes themselves be everybody's", async () => {
    const parts = setUp();
    parts.check.mockResolvedValueOnce(noModule);
    const other = remote(here, "Path b.wasm");

    const messages = await Promise.all([
      failure(parts.loader),
      refusal(parts.loader.load(other, scope())).then(({ code }) => code),
    ]);

    expect(messages[1]).toBe("module-invalid");
  });

  it("says that it is still being fetched, and then that it is compiling", async () => {
    const parts = setUp();
    const bytes = deferred<ModuleFile>();
    const end = slowCompile(parts);
    const module = remote(() => bytes.promise);

    const early = refusal(parts.loader.load(module, scope(2_000)));
    await vi.advanceTimersByTimeAsync(2_000);
    bytes.resolve(await m1.locate());
    await settle();
    const late = refusal(parts.loader.load(module, scope(1_000)));
    await vi.advanceTimersByTimeAsync(1_000);

    expect(await early).toMatchObject({
      code: "still-compiling",
      message:
        "module Path m1.wasm is still being fetched (for 2 s so far): the request's deadline came first, the fetch goes on",
    });
    expect(await late).toMatchObject({
      code: "still-compiling",
      message:
        "module Path m1.wasm is still compiling (for 3 s so far): the request's deadline came first, the compile goes on",
    });
    end.resolve(null);
    await settle();
    expect(store.size).toBe(1);
  });
});

describe("engine/module-loader fallback directory", () => {
  it.each([
    {
      name: "the compiler cannot write",
      arrange: ({ compile }: Parts) =>
        compile.mockResolvedValueOnce({
          kind: "unwritable",
          text: "no space left",
        }),
    },
    {
      name: "the artifact cannot be sealed",
      arrange: ({ seal }: Parts) =>
        seal.mockRejectedValueOnce(new Error("[io] no space left")),
    },
  ])("compiles once more, elsewhere, when $name", async ({ arrange }) => {
    const parts = setUp();
    arrange(parts);

    const lease = await parts.loader.load(m1, scope());

    expect(lease.module.abi).toBe(1);
    expect(parts.fallBack.mock.calls).toEqual([["no space left"]]);
    expect(parts.compile.mock.calls.map(([, , path]) => path)).toEqual([
      "/cache/tmp-0",
      "/fallback/tmp-1",
    ]);
    expect(parts.load.mock.lastCall?.[0].filePath).toBe(
      `/fallback/${m1.digest}`,
    );
    expect(parts.discard.mock.calls.flat()).toEqual([
      "/cache/tmp-0",
      "/fallback/tmp-1",
    ]);
    expect(parts.written.size).toBe(0);
  });

  it.each(["refused", "exhausted", "changed", "io", "unavailable"] as const)(
    "stays where it is when the compile failed otherwise: %s",
    async (kind) => {
      const parts = setUp();
      parts.compile.mockResolvedValueOnce({ kind, text: "bad" });

      await failure(parts.loader);

      expect(parts.fallBack).not.toHaveBeenCalled();
      expect(parts.calls().compiles).toBe(1);
    },
  );

  it("does not mind a temporary file that cannot be removed", async () => {
    const parts = setUp();
    parts.discard.mockRejectedValueOnce(new Error("EROFS: read-only"));

    await parts.loader.load(m1, scope());

    expect(parts.lines).toContainEqual({
      level: "debug",
      message: "cannot remove a leftover",
      fields: { temporaryPath: "/cache/tmp-0", reason: "EROFS: read-only" },
    });
  });
});

describe("engine/module-loader callers who cannot wait", () => {
  it("says after how long it is still compiling, and goes on", async () => {
    const parts = setUp();
    const end = slowCompile(parts);

    const early = refusal(parts.loader.load(m1, scope(2_000)));
    await vi.advanceTimersByTimeAsync(7_000);
    const other = moduleFile(1, { description: "Path other.wasm" });
    const late = refusal(parts.loader.load(other, scope(3_000)));
    await vi.advanceTimersByTimeAsync(3_000);

    expect(await early).toMatchObject({
      code: "still-compiling",
      message:
        "module Path m1.wasm is still compiling (for 2 s so far): the request's deadline came first, the compile goes on",
    });
    expect(await late).toMatchObject({
      code: "still-compiling",
      message:
        "module Path other.wasm is still compiling (for 10 s so far): the request's deadline came first, the compile goes on",
    });
    const patient = parts.loader.load(m1, scope());
    end.resolve(null);
    await patient;
    await parts.loader.load(m1, scope());
    expect(parts.calls()).toMatchObject({ checks: 1, compiles: 1 });
  });

  it("lets a caller who goes go at once, and the others wait", async () => {
    const parts = setUp();
    const end = slowCompile(parts);
    const caller = new AbortController();
    const going = refusal(
      parts.loader.load(m1, scope(Infinity, caller.signal)),
    );
    const staying = parts.loader.load(m1, scope());

    caller.abort();

    expect(await going).toMatchObject({
      code: "run-cancelled",
      message: "module Path m1.wasm: cancelled while it was loaded",
    });
    end.resolve(null);
    expect((await staying).module.abi).toBe(1);
    expect(parts.calls().compiles).toBe(1);
  });

  it.each([
    {
      name: "had gone before",
      make: () => scope(1_000, AbortSignal.abort()),
      want: "run-cancelled",
    },
    {
      name: "had no time left",
      make: () => scope(-5),
      want: "still-compiling",
    },
  ])("starts the load for a caller who $name, too", async ({ make, want }) => {
    const parts = setUp();
    const end = slowCompile(parts);

    const refused = refusal(parts.loader.load(m1, make()));
    await vi.advanceTimersByTimeAsync(1);
    expect((await refused).code).toBe(want);

    end.resolve(null);
    await settle();
    expect(store.size).toBe(1);
  });

  it("remembers a failure that nobody waited for", async () => {
    const parts = setUp();
    const end = slowCompile(parts);
    const early = refusal(parts.loader.load(m1, scope(10)));
    await vi.advanceTimersByTimeAsync(10);
    await early;

    end.resolve({ kind: "exhausted", text: "too much" });
    await settle();

    expect(await failure(parts.loader)).toMatch(/^compile-failed: /);
    expect(parts.calls().compiles).toBe(1);
  });

  it("watches no caller once the load is over", async () => {
    const parts = setUp();
    const end = slowCompile(parts);
    const { signal } = new AbortController();
    const loading = parts.loader.load(m1, scope(60_000, signal));
    await settle();
    expect(getEventListeners(signal, "abort")).toHaveLength(1);

    end.resolve(null);
    await loading;

    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    store.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
