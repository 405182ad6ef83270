import type { RequestScope } from "../../ports.js";

/** A request on its way to a server. */
export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "PATCH" | "POST" | "PUT";
  /** http or https, without user info and fragment. */
  readonly url: URL;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  /** `null` = none. Anything here can be sent more than once. */
  readonly body: HttpBody | null;
  /** Whether the answer may take long to read: such ones have connections of their own. */
  readonly isBulk?: boolean;
}

/** What a request carries; its length is known. */
export type HttpBody =
  | { readonly kind: "bytes"; readonly bytes: Uint8Array }
  | {
      readonly kind: "file";
      readonly filePath: string;
      readonly sizeBytes: number;
    };

/** An answer whose headers have come. Its body must be read to its end, broken off, or discarded. */
export interface HttpResponse {
  /** What was asked in the end, after redirects. */
  readonly url: URL;
  readonly status: number;
  /** The values of a header as they came, in order; none = []. */
  headers(lowerCaseName: string): readonly string[];
  /**
   * Can be read once; breaking off closes the connection. Throws LoaderError registry-unreachable
   * when the connection fails, stays silent for too long, or the scope's deadline comes, and
   * resolve-cancelled when the scope is cancelled.
   */
  readonly body: AsyncIterable<Uint8Array>;
  /** Throws away what was not read. Never rejects. */
  discard(): Promise<void>;
}

/**
 * Sends a request and waits for the headers of its answer, whatever its status, no longer than the
 * scope says; the scope holds for the body, too.
 *
 * What it throws is a LoaderError whose message is the reason alone, such as `ghcr.io: no such
 * host (ENOTFOUND)`: it names the server, and whoever asked puts the module's name before it.
 * @throws LoaderError registry-unreachable, tls-failed, plain-http-refused, resolve-cancelled,
 *   answer-invalid; module-unreadable, module-changed for the file of a body
 */
export type Send = (
  request: HttpRequest,
  scope: RequestScope,
) => Promise<HttpResponse>;

/** The one way out to registries and other servers. */
export interface Transport {
  /** Follows no redirect, repeats nothing, adds no credential. */
  readonly send: Send;
  /** Closes idle connections; requests under way fail. */
  close(): Promise<void>;
}
