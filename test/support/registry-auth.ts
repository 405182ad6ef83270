import { randomUUID } from "node:crypto";

import { PLANTED_SECRET } from "./planted-secret.js";
import type { Answer, RegistryRequest } from "./registry-exchange.js";

/** Who may pull. */
export interface Login {
  readonly username: string;
  readonly password: string;
}

/** What a token service gives tokens for. */
export interface BearerOptions {
  /** Default none is said. Nothing expires by itself: see {@link Tokens.revoke}. */
  readonly tokenTtlSeconds?: number;
  /** A refresh token that is as good as the login. */
  readonly identityToken?: string;
}

/** The tokens that were given out. */
export interface Tokens {
  /** From now on no token given out so far is taken. */
  revoke(): void;
}

/** Refuses a request, answers it itself, or lets it through. */
export type Guard = (request: RegistryRequest) => Answer | "pass";

/** Wants the login with every request. */
export function basicGuard(login: Login): Guard {
  return ({ headers }) =>
    headers.authorization === basic(login)
      ? "pass"
      : refused('Basic realm="scripted registry"');
}

/**
 * Wants a token that is good for the repository, and gives them out at /token as Docker's token
 * specification says: GET with Basic, POST with a form.
 * @param login `null` = everybody gets one
 * @param url of the registry
 */
export function bearerGuard(
  login: Login | null,
  url: string,
  { tokenTtlSeconds, identityToken }: BearerOptions,
): { guard: Guard; tokens: Tokens } {
  const given = new Map<string, ReadonlySet<string>>();

  function giveToken(key: "token" | "access_token", scopes: string[]): Answer {
    const token = `${PLANTED_SECRET}-${randomUUID()}`;
    given.set(token, permissionsIn(scopes));
    return json(200, { [key]: token, expires_in: tokenTtlSeconds });
  }

  function tokenFor({ method, query, headers, body }: RegistryRequest): Answer {
    if (method === "GET") {
      return login === null || headers.authorization === basic(login)
        ? giveToken("token", query.getAll("scope"))
        : json(401, { details: "incorrect username or password" });
    }
    const form = new URLSearchParams(Buffer.from(body).toString());
    return mayHaveToken(form, login, identityToken)
      ? giveToken("access_token", form.getAll("scope"))
      : json(401, { error: "invalid_grant" });
  }

  function guard(request: RegistryRequest): Answer | "pass" {
    if (request.path === "/token") return tokenFor(request);
    const needed = permissionFor(request);
    const challenge = `Bearer realm="${url}/token",service="scripted registry"${
      needed === null ? "" : `,scope="${needed}"`
    }`;
    const { authorization } = request.headers;
    if (authorization === undefined) return refused(challenge);
    const permissions = given.get(authorization.replace(/^Bearer /iu, ""));
    if (permissions === undefined) {
      return refused(`${challenge},error="invalid_token"`);
    }
    return needed === null || permissions.has(needed)
      ? "pass"
      : refused(`${challenge},error="insufficient_scope"`);
  }

  return { guard, tokens: { revoke: () => given.clear() } };
}

function mayHaveToken(
  form: URLSearchParams,
  login: Login | null,
  identityToken: string | undefined,
): boolean {
  if (login === null) return true;
  const grant = form.get("grant_type");
  if (grant === "refresh_token") {
    return form.get("refresh_token") === identityToken;
  }
  return (
    grant === "password" &&
    form.get("username") === login.username &&
    form.get("password") === login.password
  );
}

function permissionFor({ method, path }: RegistryRequest): string | null {
  const match = /^\/v2\/(?<repository>.+)\/(?:manifests|blobs)\//u.exec(path);
  const repository = match?.groups?.["repository"];
  if (repository === undefined) return null;
  const action = method === "GET" || method === "HEAD" ? "pull" : "push";
  return `repository:${repository}:${action}`;
}

/** `repository:a:pull,push repository:b:pull` is three permissions. */
function permissionsIn(scopes: readonly string[]): ReadonlySet<string> {
  const permissions = scopes
    .flatMap((scope) => scope.split(" "))
    .flatMap((scope) => {
      const resource = scope.slice(0, scope.lastIndexOf(":") + 1);
      const actions = scope.slice(resource.length).split(",");
      return actions.map((action) => `${resource}${action}`);
    });
  return new Set(permissions);
}

function basic({ username, password }: Login): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
}

function refused(challenge: string): Answer {
  const answer = registryError(401, "UNAUTHORIZED");
  return {
    ...answer,
    headers: { ...answer.headers, "www-authenticate": challenge },
  };
}

/** An error as registries answer with. */
export function registryError(status: number, code: string): Answer {
  return json(status, { errors: [{ code, message: code.toLowerCase() }] });
}

function json(status: number, value: object): Answer {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(value),
  };
}
