import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { createCertificateMaker } from "../unit/function/certificates.js";
import {
  readLog,
  requestsIn,
  waitForRequests,
  type LoggedRequest,
} from "./docker-registry-log.js";
import {
  startRegistryProcess,
  type RegistryProcess,
} from "./docker-registry-process.js";
import { missingTool } from "./tools.js";

/** The one login that a registry with `auth` takes. */
export const DOCKER_REGISTRY_LOGIN = {
  username: "tester",
  password: "hunter2-registry",
} as const;

// The registry takes bcrypt only, which neither Node nor OpenSSL has.
const HTPASSWD =
  "tester:$2b$04$GP/Guf/jLdzaz4NiDXepL.KvJsAwHfuU7lKhRAkm68Iu5fC947WGK\n";

/** What {@link startDockerRegistry} takes. */
export interface DockerRegistryOptions {
  /** Wants this login with every request; default none. */
  readonly auth?: typeof DOCKER_REGISTRY_LOGIN;
  /** With a certificate for localhost by an authority of its own; needs openssl. Default false. */
  readonly tls?: boolean;
  /** An existing directory, which is not removed; default one of its own. */
  readonly storageDir?: string;
  /** Default a free one. */
  readonly port?: number;
}

/** Debian's docker-registry, which is the distribution registry, in a process of its own. */
export interface DockerRegistry {
  /** `127.0.0.1:<port>`, or with TLS `localhost:<port>`. */
  readonly authority: string;
  readonly port: number;
  readonly storageDir: string;
  /** Where the authority's certificate is, and what is in there; `null` = plain HTTP. */
  readonly caFile: string | null;
  readonly caPem: string | null;
  /** All requests since the first start, in the order in which they ended; waits for the last. */
  requests(): Promise<readonly LoggedRequest[]>;
  /** Kills it, waits for its end, and removes its files unless it will be started again. */
  stop(options?: { readonly keepFiles: boolean }): Promise<void>;
  /** Kills it if it still runs, and starts it on the same port with the same files. */
  restart(): Promise<void>;
}

/** Whether there is one, as {@link missingTool} says: in CI there must be. */
export function haveDockerRegistry(): boolean {
  return !missingTool("docker-registry");
}

/** Starts one on 127.0.0.1, and waits until it listens. */
export async function startDockerRegistry(
  options: DockerRegistryOptions = {},
): Promise<DockerRegistry> {
  const dir = await mkdtemp(join(tmpdir(), "docker-registry-"));
  const storageDir = options.storageDir ?? join(dir, "storage");
  const logFile = join(dir, "log");
  writeFileSync(logFile, "");
  const certificates = options.tls === true ? certify() : null;
  const auth = options.auth === undefined ? null : htpasswdIn(dir);
  let running: RegistryProcess | null = null;

  async function start(port: number): Promise<number> {
    const configFile = join(dir, "config.json");
    const config = {
      version: 0.1,
      log: { level: "debug", formatter: "json" },
      storage: { filesystem: { rootdirectory: storageDir } },
      http: {
        addr: `127.0.0.1:${port}`,
        secret: "of uploads",
        ...(certificates && { tls: certificates.tls }),
      },
      ...(auth && { auth }),
    };
    writeFileSync(configFile, JSON.stringify(config));
    running = await startRegistryProcess(configFile, logFile);
    return running.port;
  }

  async function kill(): Promise<void> {
    await running?.kill();
    running = null;
  }

  async function removeFiles(): Promise<void> {
    certificates?.remove();
    await rm(dir, { recursive: true, force: true });
  }

  const port = await start(options.port ?? 0).catch(async (error: unknown) => {
    await removeFiles();
    throw error;
  });
  return {
    authority: `${certificates === null ? "127.0.0.1" : "localhost"}:${port}`,
    port,
    storageDir,
    caFile: certificates?.caFile ?? null,
    caPem: certificates?.caPem ?? null,
    async requests() {
      // A request that its process did not live to answer has no end.
      const since = running?.logStart ?? Infinity;
      await waitForRequests(() => readLog(logFile, since));
      return requestsIn(readLog(logFile));
    },
    async stop({ keepFiles } = { keepFiles: false }) {
      await kill();
      if (!keepFiles) await removeFiles();
    },
    async restart() {
      await kill();
      await start(port);
    },
  };
}

function htpasswdIn(dir: string) {
  const path = join(dir, "htpasswd");
  writeFileSync(path, HTPASSWD);
  return { htpasswd: { realm: "docker-registry", path } };
}

function certify() {
  const maker = createCertificateMaker();
  const caFile = maker.authority("authority");
  const { cert, key } = maker.leaf({
    name: "registry",
    authority: "authority",
    usage: "serverAuth",
    subject: "/CN=localhost",
  });
  return {
    caFile,
    caPem: readFileSync(caFile, "utf8"),
    tls: { certificate: cert, key },
    remove: () => maker.remove(),
  };
}
