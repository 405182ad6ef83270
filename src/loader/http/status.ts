import type { LoaderError, LoaderErrorCode } from "../error.js";
import { refuse } from "../refuse.js";
import { readStart } from "./bounded-body.js";
import { retryAfterOf } from "./retry-after.js";
import type { HttpResponse } from "./transport.js";

const MAX_QUOTED_BYTES = 4 * 1024;

const NAMES: ReadonlyMap<number, string> = new Map([
  [204, "No Content"],
  [400, "Bad Request"],
  [401, "Unauthorized"],
  [403, "Forbidden"],
  [404, "Not Found"],
  [405, "Method Not Allowed"],
  [406, "Not Acceptable"],
  [408, "Request Timeout"],
  [410, "Gone"],
  [429, "Too Many Requests"],
  [500, "Internal Server Error"],
  [502, "Bad Gateway"],
  [503, "Service Unavailable"],
  [504, "Gateway Timeout"],
]);

/**
 * The error that an answer with an unwanted status is: registry-auth-failed for 401 and 403,
 * module-not-found for 404, registry-unreachable for 408, 429 and 5xx, else registry-refused. Takes
 * at most 4 KiB of the body and throws away the rest; a body that fails is not quoted.
 * @param who what the message begins with, such as the host
 * @param quoteBody what to quote of the body's start, made safe to show; "" = nothing
 */
export async function refusalOf(
  response: HttpResponse,
  who: string,
  quoteBody: (start: Uint8Array) => string,
): Promise<LoaderError> {
  const { status } = response;
  const quote = quoteBody(await startOf(response));
  const code = codeOf(status);
  const name = NAMES.get(status);
  const parts = [
    `${who}: HTTP ${status}`,
    name === undefined ? "" : ` ${name}`,
    code === "registry-unreachable" ? waitAskedBy(response) : "",
    quote === "" ? "" : `: ${quote}`,
  ];
  return refuse(code, parts.join(""));
}

async function startOf(response: HttpResponse): Promise<Uint8Array> {
  try {
    return await readStart(response, MAX_QUOTED_BYTES);
  } catch {
    return new Uint8Array();
  } finally {
    await response.discard();
  }
}

function codeOf(status: number): LoaderErrorCode {
  if (status === 401 || status === 403) return "registry-auth-failed";
  if (status === 404) return "module-not-found";
  if (status === 408 || status === 429 || (status >= 500 && status <= 599))
    return "registry-unreachable";
  return "registry-refused";
}

function waitAskedBy(response: HttpResponse): string {
  const asked = retryAfterOf(response);
  if (asked === null) return "";
  return asked.kind === "delay"
    ? `, asks to wait ${asked.delayMs / 1_000} s`
    : `, asks to wait until ${new Date(asked.atMs).toISOString()}`;
}
