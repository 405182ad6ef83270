import { quoted } from "../../errors.js";
import type { Digest } from "../../ports.js";
import type { HttpResponse } from "../http/transport.js";
import { parseHost } from "../host.js";
import { refuse } from "../refuse.js";

/**
 * Where a blob is to be put, from the answer that opened its upload. What Location says is relative
 * to that answer's URL, and its query is a registry's own state, often signed: it stays as it came,
 * and `digest` follows it. No message repeats it.
 * @param who what messages call the registry
 * @throws LoaderError answer-invalid, redirect-refused
 */
export function uploadUrl(
  response: HttpResponse,
  digest: Digest,
  who: string,
): URL {
  const locations = response.headers("location");
  const [location] = locations;
  if (location === undefined || locations.length > 1) {
    throw refuse(
      "answer-invalid",
      `${who}: expected one Location header in the answer that opens an upload, got ${locations.length}`,
    );
  }
  if (!URL.canParse(location, response.url.href)) {
    throw refuse(
      "answer-invalid",
      `${who}: the Location header of the answer that opens an upload is no URL`,
    );
  }
  const url = new URL(location, response.url);
  if (!mayLeadTo(response.url, url)) {
    throw refuse(
      "redirect-refused",
      `${who}: the upload is sent to a URL with ${quoted(url.protocol)}, expected "https:"`,
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw refuse(
      "redirect-refused",
      `${who}: the upload is sent to a URL with a user name or password`,
    );
  }
  // One host, one spelling: it decides whether the registry's credential goes along.
  const host = parseHost(url.hostname);
  if (host.kind === "error")
    throw refuse(
      "redirect-refused",
      `${who}: where the upload is sent: ${host.message}`,
    );
  url.hostname = host.value;
  url.hash = "";
  // Not through searchParams, which would write the whole query anew.
  url.search = `${url.search === "" ? "?" : `${url.search}&`}digest=${encodeURIComponent(digest)}`;
  return url;
}

/** Never from https into the clear; whether http is allowed at all is the transport's to say. */
function mayLeadTo(from: URL, to: URL): boolean {
  if (to.protocol === "https:") return true;
  return to.protocol === "http:" && from.protocol === "http:";
}
