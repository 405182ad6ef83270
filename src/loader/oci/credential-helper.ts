import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { errnoOf, quoted } from "../../errors.js";
import type { Parsed } from "../../ports.js";
import { startTimer } from "../../request-scope.js";
import { basicCredential, decodeUtf8, tokenCredential } from "./basic-auth.js";
import type { Credential } from "./credential.js";

/** What a credential helper knows about a registry. */
export type HelperAnswer =
  | { readonly kind: "credential"; readonly credential: Credential }
  /** It has none for this registry. */
  | { readonly kind: "none" }
  /** There is no such program. */
  | { readonly kind: "missing"; readonly message: string }
  | { readonly kind: "failed"; readonly message: string };

export type HelperEnv = Readonly<Record<string, string | undefined>>;

const PREFIX = "docker-credential-";
/** What can be part of a file name, and is no path. */
const NAME = /^[A-Za-z0-9._-]+$/u;
const TIMEOUT_MS = 10_000;
const MAX_STDOUT_BYTES = 64 * 1024;
const MAX_STDERR_BYTES = 4 * 1024;
/** What every helper prints then, by docker/docker-credential-helpers. */
const NOT_FOUND = "credentials not found in native keychain";
/** The user name of an identity token, by docker/cli. */
const TOKEN_USER = "<token>";

/**
 * Asks the program `docker-credential-<name>` in `env`'s PATH for the credential of a registry, as
 * Docker does. It has 10 seconds. Never rejects; a message quotes what the program wrote to its
 * standard error, never its standard output, where the secrets are.
 * @param serverUrl what the program calls the registry
 */
export async function runHelper(
  name: string,
  serverUrl: string,
  env: HelperEnv,
): Promise<HelperAnswer> {
  if (!NAME.test(name)) {
    return failed(
      `the credential helper's name ${quoted(name)} is not made of letters, digits, ".", "_" and "-"`,
    );
  }
  const program = `${PREFIX}${name}`;
  const ending = await execute(program, serverUrl, env);
  const helper = `the credential helper ${program}`;
  switch (ending.kind) {
    case "exited":
      return answerOf(ending, helper);
    case "not-started":
      return ending.errno === "ENOENT"
        ? { kind: "missing", message: `${helper} is not in the PATH` }
        : failed(`${helper} cannot be started (${ending.errno})`);
    case "timed-out":
      return failed(`${helper} took longer than ${TIMEOUT_MS / 1000} s`);
    case "too-much":
      return failed(`${helper} wrote more than ${MAX_STDOUT_BYTES} bytes`);
  }
}

interface Exited {
  readonly kind: "exited";
  /** An exit code, or the name of a signal. */
  readonly code: number | string;
  readonly stdout: Buffer;
  /** The first 4 KiB. */
  readonly stderr: Buffer;
}

type Ending =
  | Exited
  | { readonly kind: "not-started"; readonly errno: string }
  | { readonly kind: "timed-out" | "too-much" };

async function execute(
  program: string,
  input: string,
  env: HelperEnv,
): Promise<Ending> {
  try {
    return await endOf(start(program, env), input);
  } catch (thrown) {
    // Node's own words could quote the environment.
    return { kind: "not-started", errno: errnoOf(thrown) };
  }
}

/** No shell. A process group of its own, so that what it starts can be ended with it. */
function start(
  program: string,
  env: HelperEnv,
): ChildProcessWithoutNullStreams {
  return spawn(program, ["get"], { env, detached: true, stdio: "pipe" });
}

/** Rejects when the program does not start. */
function endOf(
  child: ChildProcessWithoutNullStreams,
  input: string,
): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const stop = (kind: "timed-out" | "too-much"): void => {
      killGroup(child.pid);
      // What has left the group may hold the other ends for ever.
      for (const stream of [child.stdin, child.stdout, child.stderr])
        stream.destroy();
      resolve({ kind });
    };
    const stopTimer = startTimer(TIMEOUT_MS, () => stop("timed-out"));
    const stdout = keepHead(child.stdout, MAX_STDOUT_BYTES, () =>
      stop("too-much"),
    );
    const stderr = keepHead(child.stderr, MAX_STDERR_BYTES, () => undefined);
    child.once("error", (thrown) => {
      stopTimer();
      reject(thrown);
    });
    child.once("close", (code, signal) => {
      stopTimer();
      const ended = code ?? signal ?? "unknown";
      resolve({
        kind: "exited",
        code: ended,
        stdout: stdout(),
        stderr: stderr(),
      });
    });
    // A program need not read what it is told.
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
  });
}

/** Reads a stream to its end; what it returns gives the first `maxBytes`. */
function keepHead(
  stream: Readable,
  maxBytes: number,
  onMore: () => void,
): () => Buffer {
  const chunks: Buffer[] = [];
  let room = maxBytes;
  stream.on("data", (chunk: Buffer) => {
    if (chunk.length > room) onMore();
    if (room === 0) return;
    chunks.push(chunk.subarray(0, room));
    room = Math.max(0, room - chunk.length);
  });
  return () => Buffer.concat(chunks);
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

function answerOf(
  { code, stdout, stderr }: Exited,
  helper: string,
): HelperAnswer {
  if (code === 0) {
    const parsed = parseAnswer(stdout);
    if (parsed.kind === "error") return failed(`${helper}: ${parsed.message}`);
    return parsed.value === null
      ? { kind: "none" }
      : { kind: "credential", credential: parsed.value };
  }
  if (stdout.toString().trim() === NOT_FOUND) return { kind: "none" };
  const said = stderr.toString().trim();
  return failed(
    `${helper} failed (${code})${said === "" ? "" : `: ${quoted(said, MAX_STDERR_BYTES)}`}`,
  );
}

function parseAnswer(stdout: Buffer): Parsed<Credential | null> {
  const { Username: username, Secret: secret } = parseFields(stdout);
  if (typeof username !== "string" || typeof secret !== "string")
    return {
      kind: "error",
      message: "expected JSON with Username and Secret on its standard output",
    };
  // What helpers of clouds print when nobody is logged in.
  if (username === "" && secret === "") return { kind: "ok", value: null };
  return username === TOKEN_USER
    ? tokenCredential("identity-token", secret)
    : basicCredential(username, secret);
}

function parseFields(stdout: Buffer): { Username?: unknown; Secret?: unknown } {
  try {
    const value: unknown = JSON.parse(decodeUtf8(stdout) ?? "");
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    // What it throws quotes the secret.
    return {};
  }
}

function failed(message: string): HelperAnswer {
  return { kind: "failed", message };
}
