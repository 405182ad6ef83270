import { describe, expect, it } from "vitest";

import type { Engine, ModuleLease } from "../../../src/engine/index.js";
import { EngineError } from "../../../src/engine/index.js";
import { warmModules } from "../../../src/function/warm-modules.js";
import { LoaderError, type Loader } from "../../../src/loader/index.js";
import type {
  Clock,
  FoundModule,
  ModuleSource,
  RequestScope,
} from "../../../src/ports.js";
import { moduleFile } from "../engine/fixtures.js";
import { fakeEngine, fakeLoader, recordingLogger } from "./fixtures.js";

function source(path: string): ModuleSource {
  return { type: "Path", path, manifestPath: null };
}

/** A world in which every source is found under its path; what happens in it goes into `events`. */
function setUp(
  world: {
    readonly resolve?: (path: string) => Promise<FoundModule>;
    readonly load?: (module: FoundModule) => Promise<void>;
  } = {},
) {
  const events: string[] = [];
  const scopes: RequestScope[] = [];
  const contexts: Parameters<Loader["resolve"]>[1][] = [];
  let atMs = 1_000;
  const clock: Clock = { nowMs: () => 0, monotonicMs: () => atMs };
  const { logger, lines } = recordingLogger();
  const find = (path: string): Promise<FoundModule> =>
    Promise.resolve(moduleFile(1, { description: `Path ${path}` }));
  const loader: Loader = {
    ...fakeLoader(),
    async resolve(asked, context, scope) {
      const path = asked.type === "Path" ? asked.path : "";
      events.push(`resolve ${path}`);
      contexts.push(context);
      scopes.push(scope);
      const module = await (world.resolve ?? find)(path);
      return {
        module,
        manifestDigest: null,
        warning: null,
        readManifest: () => Promise.reject(new Error("nobody asks for it")),
      };
    },
  };
  const engine: Engine = {
    ...fakeEngine(() => Promise.reject(new Error("nothing is run"))),
    async load(module, scope) {
      const { description, digest } = module;
      events.push(`load ${description}`);
      scopes.push(scope);
      await world.load?.(module);
      atMs += 250.4;
      const release = () => events.push(`release ${description}`);
      return { digest, description, abi: 1, release } satisfies ModuleLease;
    },
  };
  return {
    events,
    scopes,
    contexts,
    lines,
    advance: (ms: number) => (atMs += ms),
    warm: (...paths: readonly string[]) =>
      warmModules(paths.map(source), { loader, engine }, clock, logger),
  };
}

describe("function/warm-modules", () => {
  it("loads each, and holds none", async () => {
    const { warm, events, lines } = setUp();

    await warm("a.wasm", "b.wasm");

    for (const name of ["a.wasm", "b.wasm"])
      expect(events.filter((event) => event.endsWith(name))).toEqual([
        `resolve ${name}`,
        `load Path ${name}`,
        `release Path ${name}`,
      ]);
    expect(lines).toMatchObject(
      ["a.wasm", "b.wasm"].map((path) => ({
        level: "info",
        message: "module is warm",
        fields: { module: `Path ${path}` },
      })),
    );
  });

  it("asks as a request without step credentials, that the Input's author chose", async () => {
    const { warm, contexts } = setUp();

    await warm("a.wasm");

    expect(contexts[0]?.credentialOf("any")).toBeNull();
    expect(contexts[0]?.redirectFence).toBeNull();
  });

  it("gives them ten minutes", async () => {
    const { warm, scopes, advance } = setUp({
      load: () => {
        advance(600_000);
        return Promise.resolve();
      },
    });

    await warm("a.wasm", "b.wasm");

    expect(scopes.map(({ deadlineAtMs }) => deadlineAtMs)).toEqual([
      601_000, 601_000, 601_000, 601_000,
    ]);
  });

  it("says which it cannot load and why, and goes on with the next", async () => {
    const { warm, events, lines } = setUp({
      resolve: (path) =>
        path === "gone.wasm"
          ? Promise.reject(
              new LoaderError("module-not-found", "module Path gone.wasm: no"),
            )
          : Promise.resolve(moduleFile(1, { description: `Path ${path}` })),
      load: ({ description }) =>
        description === "Path bad.wasm"
          ? Promise.reject(
              new EngineError("module-invalid", "module Path bad.wasm: none"),
            )
          : Promise.resolve(),
    });

    await warm("gone.wasm", "bad.wasm", "good.wasm");

    expect(events).toContain("release Path good.wasm");
    const message = "cannot load a module of --warm-modules";
    expect(lines).toMatchObject([
      {
        level: "warn",
        message,
        fields: { reason: "module Path gone.wasm: no" },
      },
      {
        level: "warn",
        message,
        fields: { reason: "module Path bad.wasm: none" },
      },
      { level: "info", message: "module is warm" },
    ]);
  });

  it("has nothing to do without modules", async () => {
    const { warm, events, lines } = setUp();

    await warm();

    expect({ events, lines }).toEqual({ events: [], lines: [] });
  });
});
