import { escaped } from "../../errors.js";
import type { Clock, RequestScope } from "../../ports.js";
import { createRequestScope } from "../../request-scope.js";
import type { LoaderError } from "../error.js";
import type { HttpRequest, HttpResponse, Send } from "../http/transport.js";
import { refuse } from "../refuse.js";
import { type Access, keyOfAccess, scopeOf } from "./access.js";
import { type Challenge, parseChallenges } from "./challenge.js";
import { createGrantMemory, type Grant } from "./grant-memory.js";
import { partsDigest } from "./parts-digest.js";
import { readRegistryWords, wordsWithout } from "./registry-words.js";
import {
  admitAnonymousRealm,
  admitRealm,
  isRegistryUrl,
} from "./token-realm.js";
import {
  authFailed,
  basicAuthorization,
  requestToken,
  secretsOf,
  type TokenCredential,
  type TokenRequest,
} from "./token.js";

/** An answer, and what it proves. */
export interface Authorized {
  /** Of any status but 401. */
  readonly response: HttpResponse;
  /** Whether the registry was shown the credential, or a token that was got with it. */
  readonly usedCredential: boolean;
  /** What the beginning of its body says, if it repeats nothing that was sent with the request. */
  readonly wordsOf: (bodyStart: Uint8Array) => string;
}

/** Signs in to registries when they ask for it, and remembers how. */
export interface Authorizer {
  /**
   * Sends a request to a registry, as anybody unless it is known that the registry will ask. On a
   * 401 it signs in the way the registry says, and sends the request once more. A credential goes to
   * the registry's own host and port and to its token server, nowhere else.
   * @throws LoaderError registry-auth-failed, token-realm-refused, pull-credential-invalid, what
   * asking for a token throws, and what `send` throws
   */
  send(
    request: HttpRequest,
    access: Access,
    scope: RequestScope,
  ): Promise<Authorized>;
}

/** The source of a credential that goes to the registry as it is. */
const DIRECT = "credential";
const TOKEN_BUDGET_MS = 10_000;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/u;

/**
 * An authorizer that remembers the last 1000 ways to sign in, and none at first.
 * @param send may follow redirects, without the `authorization` header when they leave the origin
 * @param options.allowsPlainHttp whether a registry may be spoken to in the clear
 * @param options.tokenServers as for {@link admitRealm}; none by default
 */
export function createAuthorizer(
  send: Send,
  options: {
    readonly clock: Clock;
    readonly allowsPlainHttp: (authority: string) => boolean;
    readonly tokenServers?: ReadonlyMap<string, string>;
  },
): Authorizer {
  const { allowsPlainHttp, clock, tokenServers } = options;
  const memory = createGrantMemory(clock);

  return {
    async send(request, access, scope) {
      const key = keyOfAccess(access);
      const isOwn = isOwnUrl(request.url, access);
      const known = isOwn ? memory.recall(key) : undefined;
      const first = await send(withGrant(request, known), scope);
      if (first.status !== 401) return authorized(first, access, known);

      const refusal = await refusalBy(first, access, known);
      if (!isOwn || !isOwnUrl(first.url, access)) throw refusal;
      memory.forget(key, known);
      const grant = await signIn(first, access, key, scope);
      if (grant === undefined) throw refusal;
      // What was refused just now is refused again.
      if (grant.source === DIRECT && known?.source === DIRECT) throw refusal;
      memory.remember(key, grant);

      const second = await send(withGrant(request, grant), scope);
      if (second.status !== 401) return authorized(second, access, grant);
      memory.forget(key, grant);
      throw await refusalBy(second, access, grant);
    },
  };

  /** Signs in the way the registry asks for; `undefined` when there is nothing to do it with. */
  async function signIn(
    response: HttpResponse,
    access: Access,
    key: string,
    scope: RequestScope,
  ): Promise<Grant | undefined> {
    const { credential } = access;
    if (credential?.kind === "registry-token")
      return directGrant(`Bearer ${headerText(credential.token, access)}`);
    const challenges = parseChallenges(response.headers("www-authenticate"));
    const bearer = challenges.find(
      ({ params, scheme }) => scheme === "bearer" && params.has("realm"),
    );
    if (bearer !== undefined) {
      const request = tokenRequestOf(bearer, access, credential);
      return await tokenGrant(request, key, scope);
    }
    if (credential === null) return undefined;
    const asksForBasic = challenges.some(({ scheme }) => scheme === "basic");
    if (asksForBasic && credential.kind === "basic")
      return directGrant(basicAuthorization(credential));
    throw noWayToSignIn(challenges, access, credential);
  }

  /** @throws LoaderError token-realm-refused */
  function tokenRequestOf(
    challenge: Challenge,
    access: Access,
    credential: TokenCredential | null,
  ): TokenRequest {
    const { registry } = access;
    const text = challenge.params.get("realm") ?? "";
    const own = admitRealm(text, registry, allowsPlainHttp, tokenServers);
    const isAnonymous = own.kind === "error" && credential === null;
    const realm = isAnonymous ? admitAnonymousRealm(text, registry) : own;
    if (realm.kind === "error")
      throw refuse("token-realm-refused", realm.message);
    return {
      registry,
      realm: realm.value,
      service: challenge.params.get("service") ?? null,
      scope: scopeOf(access, challenge),
      credential,
      mayQuote: own.kind === "ok",
    };
  }

  async function tokenGrant(
    request: TokenRequest,
    key: string,
    scope: RequestScope,
  ): Promise<Grant> {
    const { realm, service } = request;
    const source = partsDigest([
      key,
      realm.href,
      request.scope,
      ...listOf(service),
    ]);
    // Another request has got it while this one was on its way.
    const newer = memory.recall(key);
    if (newer?.source === source) return newer;
    const waitingFor = `a token from ${escaped(realm.host, 200)}`;
    return await memory.share(source, waitingFor, scope, async () => {
      const startedAtMs = clock.monotonicMs();
      const own = createRequestScope({
        deadlineAtMs: startedAtMs + TOKEN_BUDGET_MS,
      });
      const token = await requestToken(send, request, own);
      const grant: Grant = {
        authorization: `Bearer ${token.value}`,
        usedCredential: request.credential !== null,
        expiresAtMs: startedAtMs + token.usableForMs,
        source,
      };
      memory.remember(key, grant);
      return grant;
    });
  }

  /** What to say of a 401, which is then done with. */
  async function refusalBy(
    response: HttpResponse,
    access: Access,
    grant: Grant | undefined,
  ): Promise<LoaderError> {
    const words = await readRegistryWords(response, secretsIn(access, grant));
    if (isOwnUrl(response.url, access))
      return authFailed(access.registry, access.credential, words);
    // Its words are left out: it may be a server that only this machine can reach.
    const server = escaped(response.url.origin, 200);
    return refuse(
      "registry-auth-failed",
      `${server} wants a credential, and those for ${access.registry} do not go there`,
    );
  }

  function isOwnUrl(url: URL, { registry }: Access): boolean {
    return isRegistryUrl(url, registry, allowsPlainHttp);
  }
}

function authorized(
  response: HttpResponse,
  access: Access,
  grant: Grant | undefined,
): Authorized {
  return {
    response,
    usedCredential: grant?.usedCredential ?? false,
    wordsOf: (start) => wordsWithout(start, secretsIn(access, grant)),
  };
}

function secretsIn(
  { credential }: Access,
  grant: Grant | undefined,
): readonly string[] {
  const sent = grant?.authorization.replace(/^\S+ /u, "");
  return [...secretsOf(credential), ...listOf(sent)];
}

function withGrant(request: HttpRequest, grant: Grant | undefined) {
  if (grant === undefined) return request;
  const { authorization } = grant;
  return { ...request, headers: { ...request.headers, authorization } };
}

/** The credential itself, which lasts until it is refused. */
function directGrant(authorization: string): Grant {
  return {
    authorization,
    usedCredential: true,
    expiresAtMs: Infinity,
    source: DIRECT,
  };
}

function headerText(token: string, { registry }: Access): string {
  if (VISIBLE_ASCII.test(token)) return token;
  throw refuse(
    "pull-credential-invalid",
    `the registry token for ${registry} is empty or holds characters that no header can`,
  );
}

function noWayToSignIn(
  challenges: readonly Challenge[],
  { registry }: Access,
  credential: TokenCredential,
): LoaderError {
  const asked = challenges.map(({ scheme }) => scheme).join(", ");
  const what =
    credential.kind === "basic" ? "user name and password" : "identity token";
  return refuse(
    "registry-auth-failed",
    `${registry} takes no ${what}: it asks for ${asked === "" ? "a credential without saying which" : escaped(asked)}`,
  );
}

function listOf<T>(value: T | null | undefined): readonly T[] {
  return value === null || value === undefined ? [] : [value];
}
