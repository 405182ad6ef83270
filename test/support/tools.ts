import { spawnSync } from "node:child_process";

/** Programs beside Node and Rust that some tests need. */
export type Tool =
  | "go"
  | "clang"
  | "docker-registry"
  | "openssl"
  | "promtool"
  | "skopeo"
  | "unshare";

interface Probe {
  readonly args: readonly string[];
  readonly input?: string;
  readonly missing: string;
}

const PROBES: Readonly<Record<Tool, Probe>> = {
  go: { args: ["version"], missing: "go is not installed" },
  // As `examples/c/build` does: a clang without wasi-libc is of no use.
  clang: {
    args: [
      ...["--target=wasm32-wasi", "-mexec-model=reactor"],
      ...["-include", "stdlib.h", "-x", "c", "-", "-o", "/dev/null"],
    ],
    input: "int main(void) { return 0; }",
    missing: "there is no clang that links for wasm32-wasi",
  },
  "docker-registry": {
    args: ["--version"],
    missing: "docker-registry is not installed",
  },
  openssl: { args: ["version"], missing: "openssl is not installed" },
  promtool: { args: ["--version"], missing: "promtool is not installed" },
  skopeo: { args: ["--version"], missing: "skopeo is not installed" },
  // Whether mounts of one's own can be made, which takes root.
  unshare: {
    args: ["--mount", "true"],
    missing: "unshare cannot make mounts here",
  },
};

const found = new Map<Tool, boolean>();

/**
 * Whether tests that need `tool` are to be skipped, with one warning that says so. Never in CI,
 * where they fail without it.
 */
export function missingTool(tool: Tool): boolean {
  if (process.env["CI"] !== undefined) return false;
  let isThere = found.get(tool);
  if (isThere === undefined) {
    const { args, input, missing } = PROBES[tool];
    isThere = spawnSync(tool, args, { input }).status === 0;
    found.set(tool, isThere);
    if (!isThere) {
      console.warn(`${missing}: the tests that need it are skipped`);
    }
  }
  return !isThere;
}
