/**
 * Importing this keeps what the programs write that this process starts from now on, whether their
 * output is piped, ignored or inherited. A Node program, as ours are, is not started when its output
 * would not be seen.
 */
import childProcess, { ChildProcess } from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { basename } from "node:path";
import type { Readable } from "node:stream";

import { recordOutput } from "./suite-output.js";

/** Some of these print secrets, as they are meant to. */
const NOT_OURS = ["docker-registry", "git", "go", "openssl", "skopeo"];
const CREDENTIAL_HELPER = "docker-credential-";

/** More than a line of a log ever has; longer ones are kept in parts. */
const MAX_LINE_BYTES = 1024 * 1024;

interface StartOptions {
  readonly file: string;
  readonly stdio?: unknown;
}

const prototype = ChildProcess.prototype as ChildProcess & {
  spawn: (this: ChildProcess, options: StartOptions) => unknown;
};
const { spawn } = prototype;

/** What `spawn`, `exec`, `execFile` and `fork` all come down to. */
prototype.spawn = function (options) {
  if (!isOurs(options.file)) return spawn.call(this, options);
  const stdio = Array.isArray(options.stdio)
    ? [...(options.stdio as unknown[])]
    : Array<unknown>(3).fill(options.stdio);
  const wanted = [1, 2].map((fd) => destinationOf(stdio[fd], fd));
  wanted.forEach((destination, i) => {
    if (destination !== "unseen") stdio[i + 1] = "pipe";
    else refuseUnseen(options.file);
  });
  const code = spawn.call(this, { ...options, stdio });
  [this.stdout, this.stderr].forEach((stream, i) => {
    if (stream === null) return;
    recordStream(stream);
    if (wanted[i] === "ignore") stream.resume();
    if (wanted[i] === "inherit") {
      stream.on("data", (chunk: Buffer) => {
        process[i === 0 ? "stdout" : "stderr"].write(chunk);
      });
    }
  });
  return code;
};

const { spawnSync, execFileSync } = childProcess;

childProcess.spawnSync = function (...call: [string, ...never[]]) {
  const result = (spawnSync as (...call: unknown[]) => SyncResult)(...call);
  if (!isOurs(call[0]) || result.error !== undefined) return result;
  for (const output of [result.stdout, result.stderr]) {
    if (output === null) refuseUnseen(call[0]);
    else recordOutput("process", output);
  }
  return result;
} as typeof spawnSync;

// It does not tell what went to stderr when all was well.
childProcess.execFileSync = function (...call: [string, ...never[]]) {
  refuseUnseen(call[0]);
  return execFileSync(...call);
} as typeof execFileSync;

syncBuiltinESMExports();

type Output = string | Buffer;

interface SyncResult {
  readonly stdout: Output | null;
  readonly stderr: Output | null;
  readonly error?: Error;
}

function isOurs(file: string): boolean {
  const name = basename(file);
  return !NOT_OURS.includes(name) && !name.startsWith(CREDENTIAL_HELPER);
}

function destinationOf(
  wanted: unknown,
  fd: number,
): "pipe" | "ignore" | "inherit" | "unseen" {
  switch (wanted) {
    case undefined:
    case null:
    case "pipe":
    case "overlapped":
      return "pipe";
    case "ignore":
    case "inherit":
      return wanted;
    default:
      return wanted === fd ? "inherit" : "unseen";
  }
}

/** @throws Error when the program may be one of ours */
function refuseUnseen(program: string): void {
  if (basename(program) !== basename(process.execPath)) return;
  throw new Error(
    "what this program writes would not be searched for secrets: use spawn or spawnSync, and pipe its output",
  );
}

/** Keeps a stream's lines without reading it: whoever does that notices nothing. */
function recordStream(stream: Readable): void {
  let rest: Buffer[] = [];
  let restBytes = 0;
  const keep = () => {
    if (restBytes > 0) recordOutput("process", Buffer.concat(rest));
    rest = [];
    restBytes = 0;
  };
  const push = stream.push.bind(stream);
  stream.push = (chunk: Buffer | null, encoding?: BufferEncoding) => {
    if (chunk === null) keep();
    else {
      // Lines of several programs go to one file, so they are kept whole.
      const end = chunk.lastIndexOf(0x0a) + 1;
      rest.push(chunk.subarray(0, end));
      restBytes += end;
      if (end > 0) keep();
      rest.push(chunk.subarray(end));
      restBytes += chunk.length - end;
      if (restBytes > MAX_LINE_BYTES) keep();
    }
    return push(chunk, encoding);
  };
  stream.once("close", keep);
}
