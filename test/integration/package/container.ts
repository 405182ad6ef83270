import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

import { decompressed, type Image } from "../../../scripts/lib/xpkg/image.mjs";

const GIB = 1024 * 1024 * 1024;
const START_TIMEOUT_MS = 60_000;
const POLL_MS = 20;

/** What a container of an image is run with. */
export interface ContainerOptions {
  /** The unpacked image. */
  readonly tree: string;
  readonly image: Image;
  readonly uid: number;
  /** Absolute paths in the container to directories outside. */
  readonly writable: Readonly<Record<string, string>>;
  readonly readOnly: Readonly<Record<string, string>>;
  /** After the image's ENTRYPOINT, as Kubernetes' `args` are. */
  readonly args: readonly string[];
}

/** A process in a container. */
export interface Container {
  readonly pid: number;
  stderr(): string;
  /** Waits for a line of its log with that message. */
  logged(msg: string): Promise<Readonly<Record<string, unknown>>>;
  /** Sends the signal; returns how it ended. */
  end(
    signal: "SIGTERM" | "SIGKILL",
  ): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

/** Unpacks an image with the system's tar, as root, keeping modes. */
export async function unpackImage(image: Image, tree: string): Promise<void> {
  await mkdir(tree);
  for (const { gzip, digest } of image.layers) {
    const file = `${tree}-${digest.slice(7, 19)}.tar`;
    await writeFile(file, decompressed(gzip, GIB));
    const options = ["--extract", "--preserve-permissions", "--numeric-owner"];
    await promisify(execFile)("tar", [
      ...options,
      ...["--file", file, "--directory", tree],
    ]);
    await rm(file);
  }
}

/**
 * Runs the image's program as a container runtime would: in its tree, which is mounted read-only,
 * with its environment and no other, as a user that no passwd file knows, without capabilities and
 * without a way to more privileges. Needs root.
 */
export async function startContainer(
  options: ContainerOptions,
): Promise<Container> {
  const { tree, image, uid, writable, readOnly, args } = options;
  const settings = image.config["config"] as {
    readonly Entrypoint: readonly string[];
    readonly Env: readonly string[];
    readonly WorkingDir: string;
  };
  const mounts = Object.entries({ ...readOnly, ...writable });
  for (const [place] of mounts) await mkdir(path.join(tree, place));
  // The PATH is the image's.
  const mount = "/bin/mount";
  const script = [
    "set -eu",
    `${mount} --bind ${tree} ${tree}`,
    `${mount} --rbind /dev ${tree}/dev`,
    `${mount} --rbind /proc ${tree}/proc`,
    ...mounts.map(([place, dir]) => `${mount} --bind ${dir} ${tree}${place}`),
    ...[...Object.keys(readOnly), ""].map(
      (place) => `${mount} -o remount,bind,ro ${tree}${place}`,
    ),
    // Each replaces the one before, so a signal reaches the program.
    `exec /usr/bin/setpriv --no-new-privs /usr/bin/unshare --root=${tree} --wd=${settings.WorkingDir} --setgid=${uid} --setuid=${uid} -- "$@"`,
  ].join("\n");
  const child = spawn(
    "/usr/bin/unshare",
    [
      ...["--mount", "--propagation", "private", "--"],
      ...["/bin/sh", "-c", script, "sh", ...settings.Entrypoint, ...args],
    ],
    {
      stdio: ["ignore", "ignore", "pipe"],
      env: Object.fromEntries(settings.Env.map(nameAndValue)),
    },
  );
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
    stderr += chunk;
  });
  let ended: { code: number | null; signal: NodeJS.Signals | null } | null =
    null;
  const closed = once(child, "close").then(([code, signal]) => {
    ended = { code: code as number | null, signal: signal as NodeJS.Signals };
    process.off("exit", kill);
    return ended;
  });
  return {
    pid: child.pid ?? 0,
    stderr: () => stderr,
    async logged(msg) {
      const deadlineAtMs = performance.now() + START_TIMEOUT_MS;
      for (;;) {
        const line = linesOf(stderr).find((each) => each["msg"] === msg);
        if (line !== undefined) return line;
        if (ended !== null || performance.now() > deadlineAtMs)
          throw new Error(`no line "${msg}" in: ${stderr}`);
        await delay(POLL_MS);
      }
    },
    async end(signal) {
      if (ended === null) child.kill(signal);
      return closed;
    },
  };
}

function linesOf(stderr: string): Record<string, unknown>[] {
  return stderr
    .split("\n")
    .filter((text) => text.startsWith("{") && text.endsWith("}"))
    .map((text) => JSON.parse(text) as Record<string, unknown>);
}

function nameAndValue(variable: string): [string, string] {
  const at = variable.indexOf("=");
  return [variable.slice(0, at), variable.slice(at + 1)];
}
