import type { Parsed } from "../../ports.js";
import type { Credential } from "./credential.js";

/** Above what servers take as a header. */
const MAX_CHARS = 64 * 1024;
/** Either alphabet, with or without padding. */
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/u;
const CONTROL = /\p{Cc}/u;
/** Goes into a header as it is. */
const TOKEN = /^[\x21-\x7e]+$/u;

/**
 * Reads Docker's `auth`: base64 of `user:password`, where the password may have colons. Line
 * breaks and blanks in the base64, which tools put there, are passed over. Messages repeat nothing.
 */
export function parseBasicAuth(auth: string): Parsed<Credential> {
  const base64 = auth.replace(/[ \t\r\n]+/gu, "");
  const chars = base64.replace(/=+$/u, "").length;
  if (!BASE64.test(base64) || chars % 4 === 1)
    return error("auth is not base64");
  const text = decodeUtf8(Buffer.from(base64, "base64"));
  if (text === null) return error("auth is not base64 of UTF-8 text");
  const colon = text.indexOf(":");
  if (colon === -1) return error("auth has no colon, expected user:password");
  return basicCredential(text.slice(0, colon), text.slice(colon + 1));
}

/** A user name and password that RFC 7617 can carry; messages repeat nothing. */
export function basicCredential(
  username: string,
  password: string,
): Parsed<Credential> {
  if (username === "") return error("the user name is empty");
  if (username.length + password.length > MAX_CHARS)
    return error(
      `user name and password have more than ${MAX_CHARS} characters`,
    );
  if (username.includes(":")) return error("the user name has a colon");
  if (CONTROL.test(username))
    return error("the user name has a control character, maybe a line break");
  if (CONTROL.test(password))
    return error("the password has a control character, maybe a line break");
  return { kind: "ok", value: { kind: "basic", username, password } };
}

/** A token that a header can carry; messages repeat nothing of it. */
export function tokenCredential(
  kind: "identity-token" | "registry-token",
  token: string,
): Parsed<Credential> {
  if (token.length > MAX_CHARS)
    return error(`the token has more than ${MAX_CHARS} characters`);
  if (!TOKEN.test(token))
    return error("the token has blanks, control or non-ASCII characters");
  return { kind: "ok", value: { kind, token } };
}

/** `null` when the bytes are no UTF-8, of which a decoder would make another secret. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function error(message: string): { kind: "error"; message: string } {
  return { kind: "error", message };
}
