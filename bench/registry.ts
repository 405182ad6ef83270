import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A registry of one image, for whoever has its one credential. */
export interface BenchRegistry {
  /** `127.0.0.1:port` */
  readonly authority: string;
  readonly repository: string;
  /** Of the image manifest. */
  readonly digest: string;
  readonly username: string;
  readonly password: string;
  close(): Promise<void>;
}

const REPOSITORY = "bench/module";
const LOGIN = { username: "bench", password: "bench-password" };
const MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json";

/**
 * Serves a module with a manifest of its own.
 * @param isPrivate whether it asks for the credential
 */
export async function startRegistry(
  module: Uint8Array,
  isPrivate: boolean,
): Promise<BenchRegistry> {
  const moduleManifest = Buffer.from(JSON.stringify({ abi: 1 }));
  const config = Buffer.from("{}");
  const manifest = Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST_TYPE,
      config: descriptor("application/vnd.wasm.config.v0+json", config),
      layers: [
        descriptor("application/wasm", module),
        descriptor("application/vnd.wasmfn.manifest.v1+json", moduleManifest),
      ],
    }),
  );
  const digest = digestOf(manifest);
  const contents = new Map<string, Uint8Array>([
    [`manifests/${digest}`, manifest],
    ...[module, moduleManifest, config].map(
      (bytes) => [`blobs/${digestOf(bytes)}`, bytes] as const,
    ),
  ]);
  const wanted = `Basic ${Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString("base64")}`;
  const server = createServer((request, response) => {
    if (isPrivate && request.headers.authorization !== wanted) {
      response
        .writeHead(401, { "www-authenticate": 'Basic realm="bench"' })
        .end();
      return;
    }
    const path = (request.url ?? "").slice(`/v2/${REPOSITORY}/`.length);
    const bytes = contents.get(path);
    const type = path.startsWith("manifests/")
      ? MANIFEST_TYPE
      : "application/octet-stream";
    response.writeHead(bytes === undefined ? 404 : 200, {
      "content-type": type,
      "content-length": bytes?.length ?? 0,
    });
    response.end(request.method === "HEAD" ? undefined : bytes);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    authority: `127.0.0.1:${port}`,
    repository: REPOSITORY,
    digest,
    ...LOGIN,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

function descriptor(mediaType: string, bytes: Uint8Array) {
  return { mediaType, digest: digestOf(bytes), size: bytes.length };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
