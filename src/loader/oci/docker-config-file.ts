import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  statSync,
} from "node:fs";
import path from "node:path";
import type { Clock, Parsed } from "../../ports.js";
import { errnoOf } from "../../errors.js";
import { fileStateKey } from "../hash-file.js";
import type { IsPlainHttp } from "../registry-scheme.js";
import {
  type DockerConfig,
  MAX_CONFIG_BYTES,
  parseDockerConfig,
} from "./docker-config.js";

/** The runtime's own Docker config. */
export interface DockerConfigFile {
  /** What it says now; null = there is no such file. Looks at the file at most once a second. */
  current(): Parsed<DockerConfig | null>;
}

const LOOK_EVERY_MS = 1_000;
/** Never waits for a FIFO's writer. */
const OPEN_FLAGS =
  constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

const ABSENT = { kind: "ok", value: null } as const;

/**
 * Where Docker's clients have their config: `config.json` in `$DOCKER_CONFIG`, else in
 * `$HOME/.docker`; null when neither is set.
 */
export function dockerConfigFileOf(
  env: Readonly<Record<string, string | undefined>>,
): string | null {
  const dir = env["DOCKER_CONFIG"] ?? "";
  if (dir !== "") return path.join(dir, "config.json");
  const home = env["HOME"] ?? "";
  return home === "" ? null : path.join(home, ".docker", "config.json");
}

/**
 * Reads the file when it is first asked for, and again when it has become another one. A message
 * repeats nothing of it.
 * @param filePath null = as if there were none
 */
export function createDockerConfigFile(
  filePath: string | null,
  isPlainHttp: IsPlainHttp,
  clock: Clock,
): DockerConfigFile {
  if (filePath === null) return { current: () => ABSENT };
  let lookAgainAtMs = -Infinity;
  let state: string | null = null;
  let config: Parsed<DockerConfig | null> = ABSENT;
  return {
    current() {
      // Synchronous on purpose: a look costs microseconds, and a read is rare.
      if (clock.monotonicMs() < lookAgainAtMs) return config;
      lookAgainAtMs = clock.monotonicMs() + LOOK_EVERY_MS;
      const now = stateOf(filePath);
      // What cannot be looked at has no state, and is tried again.
      if (now !== null && now === state) return config;
      state = now;
      config = read(filePath, isPlainHttp);
      return config;
    },
  };
}

function stateOf(filePath: string): string | null {
  try {
    return fileStateKey(statSync(filePath, { bigint: true }));
  } catch {
    return null;
  }
}

function read(
  filePath: string,
  isPlainHttp: IsPlainHttp,
): Parsed<DockerConfig | null> {
  try {
    const descriptor = openSync(filePath, OPEN_FLAGS);
    try {
      return readOpen(descriptor, isPlainHttp);
    } finally {
      closeSync(descriptor);
    }
  } catch (thrown) {
    const errno = errnoOf(thrown);
    return errno === "ENOENT" || errno === "ENOTDIR"
      ? ABSENT
      : { kind: "error", message: `it cannot be read (${errno})` };
  }
}

function readOpen(
  descriptor: number,
  isPlainHttp: IsPlainHttp,
): Parsed<DockerConfig> {
  const stats: BigIntStats = fstatSync(descriptor, { bigint: true });
  if (!stats.isFile())
    return { kind: "error", message: "it is no regular file" };
  // One more than is allowed, so that the parser sees that there is more.
  const buffer = Buffer.alloc(MAX_CONFIG_BYTES + 1);
  let length = 0;
  for (;;) {
    const count = readSync(
      descriptor,
      buffer,
      length,
      buffer.length - length,
      null,
    );
    length += count;
    if (count === 0 || length === buffer.length) break;
  }
  return parseDockerConfig(buffer.subarray(0, length), isPlainHttp);
}
