import { quoted } from "../errors.js";
import type { HttpUrl, Parsed } from "../ports.js";
import { parseHost } from "./host.js";
import { allowsPlainHttp } from "./http/authority.js";

const MAX_CHARS = 4096;
const SCHEME = /^(?<scheme>[a-z][a-z0-9+.-]*):\/\//iu;
/** A URL parser drops or rewrites these without a word. */
const NOT_ALLOWED = /[\s\p{C}\\]/u;
/** Characters a path may hold as they are; `+` is left out, for some servers take it for a blank. */
const NEEDLESSLY_ENCODED = /%(?:24|26|2C|3A|3B|3D|40)/gu;

/**
 * Reads the URL of a module or manifest: https, or http to this very machine and to hosts in
 * `insecureHosts` (--insecure-registry).
 *
 * A WHATWG parser reads it once, so `..`, `%2e%2e` and the host's spellings are resolved before
 * anything judges or fetches it; the path is then written in the only way that is left for it. What
 * servers read in more than one way is refused: an encoded slash, backslash or control character,
 * an empty segment, a dot segment with parameters. No message repeats user info or query.
 */
export function parseHttpUrl(
  text: string,
  insecureHosts: readonly string[] = [],
): Parsed<HttpUrl> {
  if (text.length > MAX_CHARS) return tooLong(text);
  const problem = problemWith(text);
  if (problem !== undefined) return error(problem);
  const { protocol, username, password, hostname, port, pathname, search } =
    new URL(text);
  if (username !== "" || password !== "")
    return error("a URL with a user name or password is refused");
  const host = parseHost(hostname);
  if (host.kind === "error") return host;
  if (port === "0") return error("port 0 is refused");
  const authority = port === "" ? host.value : `${host.value}:${port}`;
  if (protocol === "http:" && !allowsPlainHttp(authority, insecureHosts)) {
    return error(
      `http is for localhost, 127.0.0.0/8, [::1] and the hosts in --insecure-registry only, expected https for host ${quoted(host.value, MAX_CHARS)}`,
    );
  }
  const path = canonicalPath(pathname);
  if (path.kind === "error") return path;
  const location = `${protocol}//${authority}${path.value}`;
  const href = `${location}${search}`;
  // Escaping makes text up to nine times as long.
  if (href.length > MAX_CHARS) return tooLong(href);
  return { kind: "ok", value: { href, location } };
}

/** What can be told without the parser; the rest is a URL. */
function problemWith(text: string): string | undefined {
  const scheme = SCHEME.exec(text)?.groups?.["scheme"];
  if (scheme === undefined)
    return "expected a URL such as https://example.com/fn.wasm";
  if (!/^https?$/iu.test(scheme))
    return `expected a URL with https, got ${quoted(scheme)}`;
  const character = NOT_ALLOWED.exec(text)?.[0];
  if (character !== undefined) return `a URL has no ${quoted(character)} in it`;
  if (text.includes("#")) return "a URL with a fragment (#) is refused";
  if (!URL.canParse(text))
    return "the URL does not parse, expected one such as https://example.com/fn.wasm";
  return undefined;
}

/**
 * Each segment is decoded and encoded again: `/s%65cure` and `/secure` are one path to a server, so
 * they must be one to a fence.
 */
function canonicalPath(pathname: string): Parsed<string> {
  const segments = pathname.slice(1).split("/");
  const written: string[] = [];
  for (const [at, segment] of segments.entries()) {
    const decoded = decode(segment);
    if (decoded === undefined)
      return error("the path has a percent sign that encodes no UTF-8");
    if (/[/\\\p{Cc}]/u.test(decoded)) {
      return error(
        "the path has an encoded slash, backslash or control character, which servers read in different ways",
      );
    }
    // Many servers merge slashes, so `//secure` would be a second name of `/secure`.
    if (decoded === "" && at < segments.length - 1)
      return error('the path has an empty segment ("//")');
    // Servlet containers drop what follows the `;`, then resolve: `/a/..;/secure` is `/secure`.
    if (/^\.{0,2};/u.test(decoded)) {
      return error(
        'the path has a segment "", "." or ".." with parameters after it (";"), which servers read in different ways',
      );
    }
    written.push(
      encodeURIComponent(decoded).replace(
        NEEDLESSLY_ENCODED,
        decodeURIComponent,
      ),
    );
  }
  return { kind: "ok", value: `/${written.join("/")}` };
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function tooLong(url: string) {
  return error(
    `the URL is ${url.length} characters long, expected at most ${MAX_CHARS}`,
  );
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
