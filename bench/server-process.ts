import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A server in a process of its own. */
export interface ServerProcess {
  readonly pid: number;
  /** `host:port` it listens on. */
  readonly address: string;
  /** Resolves to the exit code, however it comes to its end; `null` when a signal ended it. */
  readonly ended: Promise<number | null>;
  /** SIGTERM, and SIGKILL after 30 s. Resolves as `ended` does. */
  stop(): Promise<number | null>;
}

/** How the function is started. */
export interface FunctionOptions {
  readonly moduleDir: string;
  readonly cacheDir: string;
  /** More flags of `serve`. `--insecure` is left out when they name a `--tls-certs-dir`. */
  readonly flags?: readonly string[];
}

const START_TIMEOUT_MS = 30_000;
const STOP_TIMEOUT_MS = 30_000;

/** Starts the built program on a free loopback port. */
export function startFunction(
  options: FunctionOptions,
): Promise<ServerProcess> {
  const flags = options.flags ?? [];
  return startServer([
    fileURLToPath(new URL("../dist/main.js", import.meta.url)),
    "serve",
    ...(flags.includes("--tls-certs-dir") ? [] : ["--insecure"]),
    // Whatever DEBUG says: lines for people say nothing to listeningAddress.
    "--no-debug",
    ...["--address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0"],
    ...["--health-address", "127.0.0.1:0"],
    ...["--module-dir", options.moduleDir],
    ...["--cache-dir", options.cacheDir],
    ...flags,
  ]);
}

/** Starts the bare grpc-js server that everything is compared with. */
export function startEcho(): Promise<ServerProcess> {
  const program = fileURLToPath(new URL("./echo-server.ts", import.meta.url));
  return startServer(["--import", "tsx", program]);
}

/** Runs `use` with servers that are stopped afterwards, whatever happened. */
export async function withServers<T>(
  starting: readonly Promise<ServerProcess>[],
  use: (servers: readonly ServerProcess[]) => Promise<T>,
): Promise<T> {
  const settled = await Promise.allSettled(starting);
  const servers = settled.flatMap((start) =>
    start.status === "fulfilled" ? [start.value] : [],
  );
  try {
    const failed = settled.find((start) => start.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return await use(servers);
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
}

async function startServer(args: readonly string[]): Promise<ServerProcess> {
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const ended = new Promise<number | null>((resolve) => {
    child.once("exit", resolve);
  });
  const lastLines: string[] = [];

  const address = await new Promise<string>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(
        new Error(
          `no "listening" line within 30 s; its last lines: ${lastLines.join(" | ")}`,
        ),
      );
    }, START_TIMEOUT_MS);
    createInterface({ input: child.stderr }).on("line", (line) => {
      lastLines.push(line);
      if (lastLines.length > 10) lastLines.shift();
      const found = listeningAddress(line);
      if (found === null) return;
      clearTimeout(timer);
      resolve(found);
    });
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      const how = signal ?? `code ${String(code)}`;
      reject(
        new Error(
          `ended with ${how} before it listened: ${lastLines.join(" | ")}`,
        ),
      );
    });
  });

  return {
    pid: child.pid ?? 0,
    address,
    ended,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null)
        return child.exitCode;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      const code = await ended;
      clearTimeout(timer);
      return code;
    },
  };
}

/** The address in a JSON log line that says the gRPC port listens; `null` for every other line. */
function listeningAddress(line: string): string | null {
  try {
    const { msg, address } = JSON.parse(line) as {
      msg?: unknown;
      address?: unknown;
    };
    return msg === "listening" && typeof address === "string" ? address : null;
  } catch {
    return null;
  }
}
