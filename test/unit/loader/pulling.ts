import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type {
  Loader,
  LoaderOptions,
  PullContext,
} from "../../../src/loader/index.js";
import { LoaderError } from "../../../src/loader/error.js";
import type { Digest, ModuleSource } from "../../../src/ports.js";
import {
  type ScriptedRegistry,
  startScriptedRegistry,
} from "../../support/scripted-registry.js";
import { createTestLoader, openScope, type TestLoader } from "./loading.js";

export const WASM = Buffer.from("\0asm\x01\0\0\0 a module");

/** Registries, loaders and a cache directory of one test. */
export interface Rig {
  readonly cacheDir: string;
  registry(
    options?: Parameters<typeof startScriptedRegistry>[0],
  ): Promise<ScriptedRegistry>;
  /** A loader on the cache directory; several are as good as restarts. */
  loader(options?: Partial<LoaderOptions>): TestLoader;
  /** The path of a new directory beside the cache directory. */
  directory(name: string): string;
  /** The path of a new file beside the cache directory. */
  file(name: string, text: string): string;
  close(): Promise<void>;
}

export function createRig(): Rig {
  const dir = mkdtempSync(path.join(tmpdir(), "loader-cases-"));
  const cacheDir = path.join(dir, "cache");
  mkdirSync(cacheDir);
  const registries: ScriptedRegistry[] = [];
  const loaders: Loader[] = [];
  return {
    cacheDir,
    async registry(options) {
      const registry = await startScriptedRegistry(options);
      registries.push(registry);
      return registry;
    },
    loader(options) {
      const made = createTestLoader({ cacheDir, ...options });
      loaders.push(made.loader);
      return made;
    },
    directory(name) {
      const made = path.join(dir, name);
      mkdirSync(made);
      return made;
    },
    file(name, text) {
      const filePath = path.join(dir, name);
      writeFileSync(filePath, text);
      return filePath;
    },
    async close() {
      await Promise.all(loaders.map((loader) => loader.close()));
      await Promise.all(registries.map((registry) => registry.stop()));
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** What a whole pull brought. */
interface Pulled {
  /** Of the module's file. */
  readonly bytes: Buffer;
  readonly digest: Digest;
  readonly manifestDigest: Digest | null;
  /** The module's manifest; null = it has none. */
  readonly manifest: string | null;
  readonly description: string;
}

/** Finds a module, its file and its manifest. */
export async function pull(
  { loader }: Pick<TestLoader, "loader">,
  source: ModuleSource,
  credentialOf: PullContext["credentialOf"] = () => null,
): Promise<Pulled> {
  const context = { credentialOf, redirectFence: null };
  const found = await loader.resolve(source, context, openScope());
  const file = await found.module.locate();
  const manifest = await found.readManifest(openScope());
  return {
    bytes: await readFile(file.filePath),
    digest: found.module.digest,
    manifestDigest: found.manifestDigest,
    manifest:
      manifest === null ? null : Buffer.from(manifest.bytes).toString("utf8"),
    description: found.module.description,
  };
}

/** What a pull fails with. */
export async function failureOf(
  pulling: Promise<unknown>,
): Promise<LoaderError> {
  try {
    await pulling;
  } catch (thrown) {
    if (thrown instanceof LoaderError) return thrown;
    throw thrown;
  }
  throw new Error("expected a failure, the pull succeeded");
}

/** The step credential `regcred` with a Docker config of these entries. */
export function regcred(
  auths: Readonly<Record<string, unknown>>,
): PullContext["credentialOf"] {
  const json = Buffer.from(JSON.stringify({ auths }));
  return (name) =>
    name === "regcred" ? new Map([[".dockerconfigjson", json]]) : null;
}

/** Docker's `auth`. */
export function auth(username: string, password: string): string {
  return Buffer.from(`${username}:${password}`).toString("base64");
}

/** What a registry was asked for, without names: `GET manifests`, `HEAD blobs`, `GET token`. */
export function asked({ requests }: ScriptedRegistry): readonly string[] {
  return requests.map(({ method, path: asked }) => {
    const kind = /\/(?<kind>manifests|blobs)\/[^/]+$/u.exec(asked)?.groups;
    return `${method} ${kind?.["kind"] ?? asked.slice(1)}`;
  });
}

/** Names, below `directory`, and contents of all files there. */
export async function filesIn(
  directory: string,
): Promise<ReadonlyMap<string, Buffer>> {
  const entries = await readdir(directory, {
    recursive: true,
    withFileTypes: true,
  });
  const files = entries.filter((entry) => entry.isFile());
  return new Map(
    await Promise.all(
      files.map(async ({ parentPath, name }) => {
        const filePath = path.join(parentPath, name);
        const content = await readFile(filePath);
        return [path.relative(directory, filePath), content] as const;
      }),
    ),
  );
}
