import { quoted } from "../../errors.js";
import { FileError } from "../files/error.js";
import type { Manifest } from "../files/manifest.js";

const RUNTIME = "render.crossplane.io/runtime";
const TARGET = "render.crossplane.io/runtime-development-target";
const DEFAULT_TARGET = "localhost:9443";

/** Where each function of a pipeline listens, as a gRPC target. */
export type FunctionTargets = ReadonlyMap<string, string>;

/**
 * Finds the functions that a pipeline names among those of the functions file.
 * @param location what messages call that file, which may be a directory
 * @param override a `host:port` that stands for every one of them; `null` = what their annotations say
 * @throws FileError file-invalid
 */
export function readFunctions(
  manifests: readonly Manifest[],
  location: string,
  names: readonly string[],
  override: string | null,
): FunctionTargets {
  for (const { apiVersion, kind, root } of manifests) {
    const isFunction =
      kind === "Function" &&
      /^pkg\.crossplane\.io\/v1(beta1)?$/.test(apiVersion);
    if (isFunction) continue;
    throw new FileError(
      "file-invalid",
      `${root.where}: expected a pkg.crossplane.io/v1 Function, got ${apiVersion} ${kind}`,
    );
  }
  return new Map(
    names.map((name) => {
      const found = manifests.filter((manifest) => manifest.name === name);
      const [manifest] = found;
      if (manifest === undefined || found.length > 1) {
        throw new FileError(
          "file-invalid",
          `the pipeline names the function ${quoted(name)}, and ${quoted(location, 4096)} holds ${found.length === 0 ? "none" : "more than one"} of that name`,
        );
      }
      return [name, override ?? annotatedTarget(manifest)];
    }),
  );
}

/**
 * Reads `host:port` or `dns:///host:port`; `null` when it is neither.
 */
export function parseTarget(text: string): string | null {
  const hostAndPort = text.replace(/^dns:\/\/\//, "");
  const match =
    /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):(?<port>[0-9]{1,5})$/.exec(
      hostAndPort,
    );
  const port = Number(match?.groups?.["port"] ?? 0);
  return port >= 1 && port <= 65_535 ? `dns:///${hostAndPort}` : null;
}

function annotatedTarget({ name, annotations, root }: Manifest): string {
  const runtime = annotations.get(RUNTIME) ?? "Docker";
  if (runtime !== "Development") {
    throw new FileError(
      "file-invalid",
      `${root.where}: the function ${quoted(name)} has the render runtime ${quoted(runtime)}, but only functions that already run can be rendered with: set the annotation ${RUNTIME} to Development, or use --target`,
    );
  }
  const text = annotations.get(TARGET) ?? DEFAULT_TARGET;
  const target = parseTarget(text);
  if (target === null) {
    throw new FileError(
      "file-invalid",
      `${root.where}: the annotation ${TARGET} of the function ${quoted(name)} is ${quoted(text)}, expected host:port or dns:///host:port`,
    );
  }
  return target;
}
