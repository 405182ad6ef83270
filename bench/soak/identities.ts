import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { runGrpcGo } from "../grpc-go-client.js";
import type { MountFiles } from "./mount.js";

/** One authority with its server and its client, in Crossplane's shape. */
export interface Identity {
  /** What the function's Secret holds. */
  readonly secret: MountFiles;
  /** PEM files of the client. */
  readonly client: {
    readonly ca: string;
    readonly cert: string;
    readonly key: string;
  };
}

/** The name that both servers carry. */
export const SERVER_NAME = "function-wasm.crossplane-system";

/**
 * Two identities, each of an authority of its own. Servers and clients of both trust both, as halfway
 * through a change of authority, so that no connection may fail whichever of them is shown.
 */
export async function createIdentities(
  binary: string,
  dir: string,
): Promise<readonly [Identity, Identity]> {
  const [old, next] = [join(dir, "old"), join(dir, "new")];
  await mkdir(dir);
  for (const out of [old, next]) {
    const args = ["certs", "--out", out, "--server-name", SERVER_NAME];
    await runGrpcGo(binary, args);
  }
  const ca = join(dir, "ca.crt");
  const authorities = await Promise.all(
    [old, next].map((set) => readFile(join(set, "client", "ca.crt"), "utf8")),
  );
  await writeFile(ca, authorities.join(""));
  return [await identity(old, ca), await identity(next, ca)];
}

async function identity(set: string, ca: string): Promise<Identity> {
  return {
    secret: {
      "tls.crt": await readFile(join(set, "server", "tls.crt")),
      "tls.key": await readFile(join(set, "server", "tls.key")),
      "ca.crt": await readFile(ca),
    },
    client: {
      ca,
      cert: join(set, "client", "tls.crt"),
      key: join(set, "client", "tls.key"),
    },
  };
}
