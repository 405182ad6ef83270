import { createHash, randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { type AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** What a registry keeps; several servers may share it, as a registry and its storage do. */
export class Store {
  readonly blobs = new Map<string, Buffer>();
  /** By tag and by digest. */
  readonly manifests = new Map<string, StoredManifest>();
  /** Uploads that were opened and not finished. */
  readonly uploads = new Set<string>();
}

interface StoredManifest {
  readonly bytes: Buffer;
  readonly mediaType: string;
}

/** A request as a server received it. */
export interface Received {
  readonly method: string;
  /** Path and query, as they came. */
  readonly target: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

/** An answer in place of the registry's own. */
export interface Answer {
  readonly status: number;
  readonly headers?: Record<string, string | string[]>;
  readonly body?: string | Buffer;
}

export const REPOSITORY = "example/greeter";
export const TOKEN = "Bearer hunter2";
/** Of an upload's URL; whoever writes it anew changes it. */
export const STATE = "_state=a%2Fb+c%20d~e=&empty&sig=hunter2%3d%3D";

/** Those that must be accepted by name. */
const KNOWN_MANIFEST =
  /^application\/vnd\.(?:oci\.image|docker\.distribution)\./u;

/** A registry that holds whoever pushes to the letter of the distribution specification. */
export class PushRegistry {
  readonly received: Received[] = [];
  /** Where an upload goes on, from the path and query at which this server takes it. */
  location: (target: string) => string = (target) => target;
  /** What is answered instead; `null` = what a registry answers. */
  answer: (request: Received) => Answer | null = () => null;
  /** Called when a manifest was put. */
  afterManifest: () => void = () => undefined;
  readonly #store: Store;
  readonly #token: string | null;
  readonly #server: Server;

  /** @param token the authorization that is asked for; `null` = there must be none */
  constructor(store: Store, token: string | null) {
    this.#store = store;
    this.#token = token;
    this.#server = createServer((message, response) => {
      void this.#handle(message, response);
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, "127.0.0.1", resolve);
    });
    return this;
  }

  get host(): string {
    const { port } = this.#server.address() as AddressInfo;
    return `127.0.0.1:${port}`;
  }

  get origin(): string {
    return `http://${this.host}`;
  }

  /** Method and path of everything that was asked, without queries. */
  get asked(): string[] {
    return this.received.map(
      ({ method, target }) => `${method} ${target.replace(/\?.*$/u, "")}`,
    );
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(
    message: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const received = {
      method: message.method ?? "",
      target: message.url ?? "",
      headers: message.headers,
      body: await buffer(message),
    };
    this.received.push(received);
    const answer = this.answer(received) ?? this.#own(received);
    response.writeHead(answer.status, answer.headers);
    response.end(received.method === "HEAD" ? undefined : answer.body);
  }

  #own(request: Received): Answer {
    if ((request.headers.authorization ?? null) !== this.#token)
      return problem(401, "UNAUTHORIZED");
    const [path = "", query = ""] = request.target.split("?");
    const prefix = `/v2/${REPOSITORY}/`;
    if (!path.startsWith(prefix)) return problem(404, "NAME_UNKNOWN");
    const rest = path.slice(prefix.length);
    const [, what = "", id = ""] = /^(.*?)\/([^/]*)$/u.exec(rest) ?? [];
    switch (`${request.method} ${what}`) {
      case "HEAD blobs":
        return this.#store.blobs.has(id)
          ? { status: 200 }
          : problem(404, "BLOB_UNKNOWN");
      case "POST blobs/uploads":
        return this.#open();
      case "PUT blobs/uploads":
        return this.#finish(id, query, request);
      case "PUT manifests":
        return this.#putManifest(id, request);
      case "GET manifests":
        return this.#getManifest(id, request);
      default:
        return problem(405, "UNSUPPORTED");
    }
  }

  #open(): Answer {
    const id = randomUUID();
    this.#store.uploads.add(id);
    const target = `/v2/${REPOSITORY}/blobs/uploads/${id}?${STATE}`;
    return { status: 202, headers: { location: this.location(target) } };
  }

  #finish(id: string, query: string, { headers, body }: Received): Answer {
    const digest = sha256(body);
    if (!this.#store.uploads.has(id))
      return problem(404, "BLOB_UPLOAD_UNKNOWN");
    if (query !== `${STATE}&digest=${encodeURIComponent(digest)}`)
      return problem(400, "DIGEST_INVALID");
    if (headers["content-length"] !== String(body.length))
      return problem(411, "SIZE_INVALID");
    if (headers["content-type"] !== "application/octet-stream")
      return problem(415, "BLOB_UPLOAD_INVALID");
    this.#store.uploads.delete(id);
    this.#store.blobs.set(digest, body);
    return { status: 201 };
  }

  #putManifest(reference: string, { headers, body }: Received): Answer {
    const mediaType = headers["content-type"] ?? "";
    const manifest = JSON.parse(body.toString()) as {
      mediaType: string;
      config: { digest: string };
      layers: { digest: string }[];
    };
    const blobs = [manifest.config, ...manifest.layers];
    if (!blobs.every(({ digest }) => this.#store.blobs.has(digest)))
      return problem(404, "MANIFEST_BLOB_UNKNOWN");
    if (mediaType !== manifest.mediaType)
      return problem(400, "MANIFEST_INVALID");
    const digest = sha256(body);
    if (reference.includes(":") && reference !== digest)
      return problem(400, "DIGEST_INVALID");
    this.#store.manifests.set(reference, { bytes: body, mediaType });
    this.#store.manifests.set(digest, { bytes: body, mediaType });
    this.afterManifest();
    return { status: 201 };
  }

  /** As Docker's registry does, it has nothing for whoever does not accept what it has. */
  #getManifest(reference: string, { headers }: Received): Answer {
    const manifest = this.#store.manifests.get(reference);
    const accepted = headers.accept?.split(", ") ?? [];
    const mediaType = manifest?.mediaType ?? "";
    const wanted = KNOWN_MANIFEST.test(mediaType) ? mediaType : "*/*";
    if (manifest === undefined || !accepted.includes(wanted))
      return problem(404, "MANIFEST_UNKNOWN");
    return {
      status: 200,
      headers: { "content-type": manifest.mediaType },
      body: manifest.bytes,
    };
  }
}

export function sha256(bytes: Uint8Array): `sha256:${string}` {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

function problem(status: number, code: string): Answer {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ errors: [{ code, message: `said ${code}` }] }),
  };
}
