import { LoaderError, type LoaderErrorCode } from "../error.js";
import { refuse } from "../refuse.js";

/** How far an exchange got: the answer's headers had come, or had not. */
export type Phase = "headers" | "body";

interface Explanation {
  readonly code: LoaderErrorCode;
  readonly reason: string;
}

const NAME_ERRORS = /^(?:ENOTFOUND|EAI_[A-Z]+)$/u;
/** The operating system's names have no underscore, unlike OpenSSL's and Node's. */
const SYSTEM_ERROR = /^E[A-Z0-9]+$/u;
const LOCAL_ERRORS = ["EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM"];
const CERTIFICATE_ERRORS =
  /^(?:CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|ERROR_IN_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|UNSPECIFIED$)/u;
/** The answer was to end with the connection's end, and was not complete then. */
const INVALID_EOF = "invalid end";
const HOST_ERRORS = /^(?:ERR_TLS_CERT_ALTNAME_|HOSTNAME_MISMATCH$)/u;
/** EPROTO is what a system call says when OpenSSL gave up. */
const TLS_ERRORS = /^(?:ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO$)/u;

/**
 * The LoaderError that a failed exchange is; a LoaderError stays what it is. Shows codes only: the
 * texts of errors repeat what the server, or whoever answered in its place, has sent.
 *
 * Whatever is not known to be the network's fault is not taken for it: registry-unreachable is what
 * caches make up for.
 */
export function failureOf(
  error: unknown,
  host: string,
  phase: Phase,
): LoaderError {
  if (error instanceof LoaderError) return error;
  const name = nameOf(error);
  const { code, reason } = explain(name, phase);
  return refuse(code, `${host}: ${reason} (${name})`, error);
}

/** @param code the error's */
function explain(code: string, phase: Phase): Explanation {
  if (HOST_ERRORS.test(code))
    return tlsFailed("the TLS certificate is for another host");
  if (CERTIFICATE_ERRORS.test(code)) {
    return tlsFailed(
      "the TLS certificate does not verify, --registry-ca names a CA to trust for this host",
    );
  }
  if (TLS_ERRORS.test(code)) return tlsFailed("TLS failed");
  // Says nothing about the server.
  if (LOCAL_ERRORS.includes(code))
    return {
      code: "cache-unwritable",
      reason: "this machine has no handles left",
    };
  if (NAME_ERRORS.test(code)) {
    return unreachable(
      code === "ENOTFOUND" ? "no such host" : "the name does not resolve",
    );
  }
  switch (code) {
    case "ECONNREFUSED":
      return unreachable("connection refused");
    case "UND_ERR_CONNECT_TIMEOUT":
      return unreachable("no connection in time");
    case "UND_ERR_HEADERS_TIMEOUT":
      return unreachable("connected, but no answer in time");
    case "UND_ERR_BODY_TIMEOUT":
      return unreachable("the answer stalled");
    case "UND_ERR_SOCKET":
    case "ECONNRESET":
    case "EPIPE":
      return unreachable(
        phase === "headers"
          ? "the connection was closed before an answer came"
          : "the answer ended early",
      );
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return { code: "resolve-cancelled", reason: "the client was closed" };
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
    case INVALID_EOF:
      // Before the headers have all come, lengths can only contradict each other.
      if (phase === "body") return unreachable("the answer ended early");
      break;
    default:
      if (SYSTEM_ERROR.test(code)) return unreachable("connection failed");
  }
  return { code: "answer-invalid", reason: "the answer is not valid HTTP" };
}

function unreachable(reason: string): Explanation {
  return { code: "registry-unreachable", reason };
}

function tlsFailed(reason: string): Explanation {
  return { code: "tls-failed", reason };
}

/** The code of an error, or what stands in for one. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown error";
  // Undici's parser has no codes, and of these two its texts alone tell.
  if (error.message.endsWith("(Invalid EOF state)")) return INVALID_EOF;
  if (/^bad (?:upgrade|response)$/u.test(error.message)) return error.message;
  return "code" in error && typeof error.code === "string"
    ? error.code
    : error.name;
}
