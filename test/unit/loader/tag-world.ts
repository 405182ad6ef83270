import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { onTestFinished } from "vitest";
import {
  LoaderError,
  type LoaderOptions,
  type PullContext,
} from "../../../src/loader/index.js";
import type { Digest, RequestScope, Warning } from "../../../src/ports.js";
import type { PublishedModule } from "../../support/registry-content.js";
import type {
  Answer,
  Reaction,
  RegistryRequest,
} from "../../support/registry-exchange.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import {
  createTestLoader,
  openScope,
  tagged,
  type TestLoader,
} from "./loading.js";

/** What came of a whole load. */
export interface Loaded {
  readonly manifestDigest: Digest | null;
  readonly warning: string | null;
  /** What the module's file held, as text. */
  readonly content: string;
}

/** How {@link TagLoader.load} asks; by default for whatever the tag leads to, as anybody. */
export interface Asking {
  readonly expectedDigest?: Digest;
  readonly scope?: RequestScope;
  /** Whose step credential the module is pulled with. */
  readonly user?: string;
}

/** A loader that loads modules whole. */
export interface TagLoader extends TestLoader {
  /** Resolves and locates. @param ref default the world's */
  load(asking?: Asking, ref?: string): Promise<Loaded>;
}

/** A registry, a cache directory, and loaders on them; all is gone after the test. */
export interface TagWorld {
  readonly registry: ScriptedRegistry;
  readonly cacheDir: string;
  /** Tag v1 of the repository that {@link TagWorld.publish} publishes to. */
  readonly ref: string;
  /** A module with that content under the tag v1. */
  publish(content: string): PublishedModule;
  open(options?: Partial<LoaderOptions>): TagLoader;
  /** The requests so far, without the repository: `GET manifests/v1`. */
  requests(): string[];
  /** Every file of the cache with its content. */
  cached(): Record<string, string>;
}

export const NOWHERE: Digest = `sha256:${"0".repeat(64)}`;

/** @param tls as {@link startScriptedRegistry} takes it */
export async function openTagWorld(tls?: {
  key: string;
  cert: string;
}): Promise<TagWorld> {
  const cacheDir = mkdtempSync(path.join(tmpdir(), "loader-tags-"));
  const registry = await startScriptedRegistry(
    tls === undefined ? {} : { tls },
  );
  const loaders: TestLoader[] = [];
  onTestFinished(async () => {
    for (const { loader } of loaders) await loader.close();
    await registry.stop();
    rmSync(cacheDir, { recursive: true, force: true });
  });
  const ref = `${registry.authority}/a/b:v1`;

  return {
    registry,
    cacheDir,
    ref,
    publish: (content) =>
      registry.addModule("a/b", { wasm: Buffer.from(content), tag: "v1" }),
    open(options) {
      const opened = createTestLoader({ cacheDir, ...options });
      loaders.push(opened);
      return {
        ...opened,
        async load({ expectedDigest = null, scope, user } = {}, from = ref) {
          const found = await opened.loader.resolve(
            tagged(from, {
              expectedDigest,
              credentials: user === undefined ? null : "pull",
            }),
            user === undefined ? anybody : signedInAs(user),
            scope ?? openScope(),
          );
          const file = await found.module.locate();
          return {
            manifestDigest: found.manifestDigest,
            warning: said(found.warning),
            content: await readFile(file.filePath, "utf8"),
          };
        },
      };
    },
    requests: () =>
      registry.requests.map(
        ({ method, path: asked }) =>
          `${method} ${asked.slice("/v2/a/b/".length)}`,
      ),
    cached: () =>
      Object.fromEntries(
        readdirSync(cacheDir, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ parentPath, name }) => path.join(parentPath, name))
          .map((file) => [
            path.relative(cacheDir, file),
            readFileSync(file, "latin1"),
          ]),
      ),
  };
}

/** What the tag led to is in the cache, and the loader was started afterwards. */
export interface WarmWorld {
  readonly world: TagWorld;
  readonly digest: Digest;
  readonly loader: TagLoader;
}

/** The content is `one`. */
export async function openWarmWorld(): Promise<WarmWorld> {
  const world = await openTagWorld();
  const { manifestDigest: digest } = world.publish("one");
  await world.open().load();
  return { world, digest, loader: world.open() };
}

/** From now on that is what comes of a question about the world's tag. */
export function answerTag(
  { registry }: TagWorld,
  react: (request: RegistryRequest) => Reaction | Promise<Reaction>,
): void {
  registry.intercept((request) =>
    request.path.endsWith("/manifests/v1") ? react(request) : "pass",
  );
}

/** Asks for a longer pause than there is time, so that it is not tried again. */
export function status(code: number): Answer {
  return { status: code, headers: { "retry-after": "60" } };
}

/** The LoaderError that a load ends with. */
export async function refusalOf(work: Promise<unknown>): Promise<LoaderError> {
  const outcome = await work.then(
    (value) => ({ value }),
    (thrown: unknown) => ({ thrown }),
  );
  if ("thrown" in outcome && outcome.thrown instanceof LoaderError)
    return outcome.thrown;
  throw new Error("expected a LoaderError", {
    cause: "thrown" in outcome ? outcome.thrown : outcome.value,
  });
}

/** Somewhere to wait until it is opened. */
export interface Gate {
  /** Waits until the gate is open. */
  pass(): Promise<void>;
  /** Resolves when somebody waits at it. */
  readonly reached: Promise<void>;
  open(): void;
}

export function createGate(): Gate {
  let open = (): void => undefined;
  let reach = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  const reached = new Promise<void>((resolve) => (reach = resolve));
  return {
    pass() {
      reach();
      return opened;
    },
    reached,
    open: () => open(),
  };
}

const anybody: PullContext = { credentialOf: () => null, redirectFence: null };

function signedInAs(user: string): PullContext {
  const data = new Map([
    ["username", Buffer.from(user)],
    ["password", Buffer.from("hunter2")],
  ]);
  return { credentialOf: () => data, redirectFence: null };
}

/** What an answer would have said. */
function said(warning: Warning | null): string | null {
  warning?.said();
  return warning?.text ?? null;
}
