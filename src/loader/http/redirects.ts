import { escaped } from "../../errors.js";
import type { RequestScope } from "../../ports.js";
import { LoaderError } from "../error.js";
import { parseHost } from "../host.js";
import { refuse } from "../refuse.js";
import { hostOf } from "./authority.js";
import type { HttpRequest, HttpResponse, Send } from "./transport.js";

const MAX_HOPS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];
/** What may go to another origin. A credential is in none of these, nor in a header not thought of. */
const HARMLESS = [
  "accept",
  "accept-encoding",
  "if-none-match",
  "range",
  "user-agent",
];

/**
 * Follows the redirects of GET and HEAD requests, at most 5, never from https to http; those of
 * other methods are given back as they came. Only harmless headers go to another origin, and what
 * was dropped once stays dropped, even on the way back.
 * @param admit is asked about each URL a redirect leads to before anything is sent there; throws to
 *   refuse it, and may give another spelling of it, which is then what is asked
 * @throws LoaderError redirect-refused, answer-invalid, and what `send` and `admit` throw
 */
export function following(
  send: Send,
  admit: (url: URL) => Promise<URL | undefined> | URL | undefined,
): Send {
  return async (first, scope) => {
    let request = first;
    for (let hops = 0; ; hops++) {
      const response = await sendHop(send, request, first, scope);
      if (!isToBeFollowed(request, response)) return response;
      await response.discard();
      const target = targetOf(request.url, response);
      if (hops === MAX_HOPS) {
        throw refused(
          request.url,
          `more than ${MAX_HOPS} redirects, the last one to ${locationOf(target)}`,
        );
      }
      const url = (await admit(target)) ?? target;
      request = { ...request, url, headers: headersFor(url, request) };
    }
  };
}

/**
 * Why another server gave no answer would tell of it: its ports and its certificate, to who sent us
 * there.
 */
async function sendHop(
  send: Send,
  request: HttpRequest,
  first: HttpRequest,
  scope: RequestScope,
): Promise<HttpResponse> {
  try {
    return await send(request, scope);
  } catch (thrown) {
    const isElsewhere = request.url.origin !== first.url.origin;
    if (!isElsewhere || !(thrown instanceof LoaderError)) throw thrown;
    // Nothing of that was learnt there.
    if (thrown.code === "resolve-cancelled") throw thrown;
    if (thrown.code === "plain-http-refused") throw thrown;
    throw refuse(
      thrown.code,
      `${hostOf(first.url)} sent on to ${hostOf(request.url)}, which could not be asked`,
      thrown,
    );
  }
}

function isToBeFollowed(request: HttpRequest, response: HttpResponse): boolean {
  return (
    REDIRECTS.includes(response.status) &&
    (request.method === "GET" || request.method === "HEAD")
  );
}

/** Where a redirect leads, written in the one way that fences see and that is dialled. */
function targetOf(from: URL, response: HttpResponse): URL {
  const [text, ...others] = response.headers("location");
  if (
    text === undefined ||
    others.length > 0 ||
    !URL.canParse(text, from.href)
  ) {
    throw refuse(
      "answer-invalid",
      `${hostOf(from)}: HTTP ${response.status} without a location that can be read`,
    );
  }
  const target = new URL(text, from);
  if (target.protocol !== "https:" && target.protocol !== "http:")
    throw refused(from, `redirect to ${escaped(target.protocol)}`);
  const shown = locationOf(target);
  if (target.username !== "" || target.password !== "")
    throw refused(from, `redirect with a user name or password to ${shown}`);
  if (from.protocol === "https:" && target.protocol === "http:")
    throw refused(from, `redirect from https to ${shown}`);
  const host = parseHost(target.hostname);
  if (host.kind === "error")
    throw refused(from, `redirect to ${shown}: ${host.message}`);
  target.hostname = host.value;
  target.hash = "";
  return target;
}

function headersFor(target: URL, request: HttpRequest): HttpRequest["headers"] {
  if (target.origin === request.url.origin) return request.headers;
  return Object.fromEntries(
    Object.entries(request.headers).filter(([name]) => HARMLESS.includes(name)),
  );
}

/** Without user info and query, which may be secrets. */
function locationOf(url: URL): string {
  return escaped(`${url.origin}${url.pathname}`);
}

function refused(from: URL, reason: string): LoaderError {
  return refuse("redirect-refused", `${hostOf(from)}: ${reason}`);
}
