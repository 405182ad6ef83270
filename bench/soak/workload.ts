import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { BIG_TIMEOUT } from "../bench.js";
import { assemble, variants, type Guest } from "../guests.js";
import { startRegistry, type BenchRegistry } from "../registry.js";
import { runFunctionRequest, type RequestParts } from "../request.js";

/** One request for each of {@link DIGESTS} modules. */
export interface Workload {
  readonly moduleDir: string;
  /** Paths of the requests. */
  readonly requestFiles: readonly string[];
  close(): Promise<void>;
}

export const DIGESTS = 50;

const ABIS = [
  { abi: 1, text: "echo" },
  { abi: 2, text: "echo-component" },
] as const;

function manifestPath(abi: number): string {
  return `token-${abi}.wasmfn.yaml`;
}

function manifest(abi: number): string {
  return `
abi: ${abi}
requires:
  env:
    - name: TOKEN
      fromCredential: { name: db, key: token }
`;
}

/** A version of the operator policy; without any, the modules that want a variable would not run. */
export function policyText(version: number): string {
  return `
// version ${version}
permit (principal, action in [Action::"setEnv", Action::"spendCredential"], resource)
when { principal.namespace like "team-*" };
permit (principal, action == Action::"setEnv", resource)
when { principal.namespace == "version-${version}" };
`;
}

/**
 * Modules that do the same and differ in their digests, half of each ABI. Ten are files that need the
 * operator policy, ten are pulled by their digest, some of them with a credential, the others are
 * plain files.
 */
export async function createWorkload(dir: string): Promise<Workload> {
  const moduleDir = join(dir, "modules");
  await mkdir(moduleDir, { recursive: true });
  const registries: BenchRegistry[] = [];

  /** Of the module with that index among those of its ABI. */
  async function partsFor(
    guest: Guest,
    index: number,
    abi: number,
  ): Promise<Partial<RequestParts>> {
    if (index % 5 === 3) {
      return {
        module: { path: guest.path, manifestPath: manifestPath(abi) },
        credentials: { db: { token: "x".repeat(40) } },
      };
    }
    // The registry's manifest is one for core modules.
    if (abi !== 1 || (index % 5 !== 2 && index % 5 !== 4)) return {};
    const isPrivate = index % 2 === 0;
    const registry = await startRegistry(
      await readFile(join(moduleDir, guest.path)),
      isPrivate,
    );
    registries.push(registry);
    const { authority, repository, digest, username, password } = registry;
    const ref = `${authority}/${repository}@${digest}`;
    if (!isPrivate) return { module: { type: "OCI", oci: { ref } } };
    return {
      module: { type: "OCI", oci: { ref, credentials: "pull" } },
      credentials: { pull: { username, password } },
    };
  }

  const requestFiles: string[] = [];
  for (const { abi, text } of ABIS) {
    await writeFile(join(moduleDir, manifestPath(abi)), manifest(abi));
    const guest = await assemble(moduleDir, text);
    const modules = await variants(moduleDir, guest, DIGESTS / 2);
    for (const [index, module] of modules.entries()) {
      const file = join(dir, `${module.name}.request`);
      const parts = await partsFor(module, index, abi);
      await writeFile(
        file,
        runFunctionRequest({
          modulePath: module.path,
          timeout: BIG_TIMEOUT,
          ...parts,
        }),
      );
      requestFiles.push(file);
    }
  }
  return {
    moduleDir,
    requestFiles,
    async close() {
      await Promise.all(registries.map((registry) => registry.close()));
    },
  };
}
