import { escaped } from "../../errors.js";
import type { RequestScope } from "../../ports.js";
import type { LoaderError } from "../error.js";
import { readBounded } from "../http/bounded-body.js";
import type { HttpRequest, HttpResponse, Send } from "../http/transport.js";
import { refuse } from "../refuse.js";
import type { Credential } from "./credential.js";
import { readRegistryWords } from "./registry-words.js";

/** What a token server is asked for. */
export interface TokenRequest {
  /** As in an OciReference; what messages are about. */
  readonly registry: string;
  /** Admitted for this credential; its query is kept. */
  readonly realm: URL;
  /** `null` when the challenge named none. */
  readonly service: string | null;
  readonly scope: string;
  readonly credential: TokenCredential | null;
  /** Whether messages may say what the token server says. */
  readonly mayQuote: boolean;
}

/** The credentials that token servers take. */
export type TokenCredential = Exclude<
  Credential,
  { readonly kind: "registry-token" }
>;

/** What a token server gave. */
export interface Token {
  /** A secret. Visible ASCII, at most 16 KiB. */
  readonly value: string;
  /** For how long it can be used, a tenth of its life kept in reserve. At most an hour. */
  readonly usableForMs: number;
}

const MAX_BODY_BYTES = 64 * 1024;
const MAX_TOKEN_CHARS = 16 * 1024;
const CLIENT_ID = "function-wasm";
/** The life of a token that says nothing of it, by Docker's token specification. */
const DEFAULT_LIFE_SECONDS = 60;
const MAX_USABLE_MS = 3_600_000;

/**
 * Asks a token server for a token, once: by Docker's token specification without a credential or
 * with a user name and password, by its OAuth2 variant with an identity token.
 * https://distribution.github.io/distribution/spec/auth/token/
 * @throws LoaderError registry-auth-failed, registry-refused, registry-unreachable,
 * answer-too-large, answer-invalid, and what `send` throws
 */
export async function requestToken(
  send: Send,
  request: TokenRequest,
  scope: RequestScope,
): Promise<Token> {
  const response = await send(httpRequestOf(request), scope);
  if (response.status !== 200) throw await refusal(request, response);
  const what = `${serverOf(request)}: the answer to the request for a token`;
  const token = parseToken(await readBounded(response, MAX_BODY_BYTES, what));
  if (token === undefined) {
    throw refuse(
      "answer-invalid",
      `${what} holds none, expected JSON with "token" or "access_token"`,
    );
  }
  return token;
}

/** The value of an `Authorization` header. */
export function basicAuthorization(
  credential: Extract<Credential, { readonly kind: "basic" }>,
): string {
  const pair = `${credential.username}:${credential.password}`;
  return `Basic ${Buffer.from(pair, "utf8").toString("base64")}`;
}

/** What no message may repeat: the fields of a credential, and what they are sent as. */
export function secretsOf(credential: Credential | null): readonly string[] {
  if (credential === null) return [];
  if (credential.kind !== "basic") return [credential.token];
  const { username, password } = credential;
  const sent = basicAuthorization(credential).slice("Basic ".length);
  return [username, password, sent];
}

/** The registry, or its token server, says no. */
export function authFailed(
  registry: string,
  credential: Credential | null,
  words: string,
): LoaderError {
  const reason =
    credential === null
      ? `${registry}: the registry wants a credential and there is none for it`
      : `${registry} refused the credential`;
  return refuse("registry-auth-failed", `${reason}${suffix(words)}`);
}

function httpRequestOf(request: TokenRequest): HttpRequest {
  const { credential, realm } = request;
  const fields = new URLSearchParams();
  if (request.service !== null) fields.set("service", request.service);
  fields.set("scope", request.scope);
  const accept = "application/json";

  if (credential?.kind === "identity-token") {
    fields.set("grant_type", "refresh_token");
    fields.set("client_id", CLIENT_ID);
    fields.set("refresh_token", credential.token);
    return {
      method: "POST",
      url: realm,
      headers: { accept, "content-type": "application/x-www-form-urlencoded" },
      body: { kind: "bytes", bytes: Buffer.from(fields.toString()) },
    };
  }
  const url = new URL(realm);
  // Not by its searchParams, which would write the realm's own query anew. Some servers take a
  // plus for a plus.
  const query = fields.toString().replaceAll("+", "%20");
  url.search = url.search === "" ? query : `${url.search}&${query}`;
  return {
    method: "GET",
    url,
    headers:
      credential === null
        ? { accept }
        : { accept, authorization: basicAuthorization(credential) },
    body: null,
  };
}

async function refusal(
  request: TokenRequest,
  response: HttpResponse,
): Promise<LoaderError> {
  const { credential, realm, registry } = request;
  const { status } = response;
  // A redirect may have led to a server that only this machine can reach.
  const mayQuote = request.mayQuote && response.url.host === realm.host;
  const words = await readRegistryWords(response, secretsOf(credential));
  const said = mayQuote ? words : "";
  if (status === 400 || status === 401 || status === 403)
    return authFailed(registry, credential, said);
  const code =
    status === 408 || status === 429 || status >= 500
      ? "registry-unreachable"
      : "registry-refused";
  return refuse(
    code,
    `${serverOf(request)} answers ${status} to the request for a token${suffix(said)}`,
  );
}

function serverOf({ realm }: TokenRequest): string {
  return escaped(realm.host, 200);
}

function suffix(words: string): string {
  return words === "" ? "" : `: ${words}`;
}

function parseToken(bytes: Uint8Array): Token | undefined {
  const answer = parseObject(bytes);
  const value = [answer.get("token"), answer.get("access_token")].find(
    (text) => typeof text === "string" && text !== "",
  );
  if (typeof value !== "string" || value.length > MAX_TOKEN_CHARS)
    return undefined;
  // Anything else would be refused, or worse, split the header that it goes into.
  if (!/^[\x21-\x7e]+$/u.test(value)) return undefined;
  const lifeMs = lifeSecondsOf(answer.get("expires_in")) * 1000;
  return { value, usableForMs: Math.min(lifeMs * 0.9, MAX_USABLE_MS) };
}

function parseObject(bytes: Uint8Array): ReadonlyMap<string, unknown> {
  try {
    const value: unknown = JSON.parse(Buffer.from(bytes).toString("utf8"));
    const isObject = typeof value === "object" && value !== null;
    return new Map(isObject ? Object.entries(value) : []);
  } catch {
    return new Map();
  }
}

/** Some servers write the number as a string, or 0 for what they do not know. */
function lifeSecondsOf(expiresIn: unknown): number {
  const seconds =
    typeof expiresIn === "string" && /^[0-9]{1,10}$/u.test(expiresIn)
      ? Number(expiresIn)
      : expiresIn;
  return typeof seconds === "number" && Number.isFinite(seconds) && seconds > 0
    ? seconds
    : DEFAULT_LIFE_SECONDS;
}
