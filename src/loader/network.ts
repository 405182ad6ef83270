import type { Clock } from "../ports.js";
import { answeringWithin } from "./http/answering-within.js";
import { breaking } from "./http/breaker.js";
import { following } from "./http/redirects.js";
import { retrying } from "./http/retrying.js";
import type { Send } from "./http/transport.js";
import { createTransport } from "./http/undici-transport.js";
import { sleep } from "./http/wait.js";
import { RESOLVE_BUDGET_MS } from "./limits.js";
import { createAuthorizer, type Authorizer } from "./oci/authorizer.js";
import {
  createIsPlainHttp,
  type IsPlainHttp,
  type SchemeOptions,
} from "./registry-scheme.js";

/** The way out to registries and web servers. */
export interface Network {
  /** Tries again what may pass, and leaves a server alone that gives no answer; follows no redirect. */
  readonly send: Send;
  /** Signs in to registries; follows redirects of GET, which lead to their storage. */
  readonly authorizer: Authorizer;
  readonly isPlainHttp: IsPlainHttp;
  close(): Promise<void>;
}

/** Makes the way out; nothing is sent. */
export function createNetwork(options: SchemeOptions, clock: Clock): Network {
  const transport = createTransport(options, clock);
  const send = breaking(
    retrying(answeringWithin(transport.send, RESOLVE_BUDGET_MS, clock), {
      clock,
      sleep,
      random: Math.random,
    }),
    clock,
  );
  const isPlainHttp = createIsPlainHttp(options);
  const followed = following(send, () => undefined);
  const authorizer = createAuthorizer(
    // A HEAD that is sent on has its answer: storage may refuse a HEAD that its link was not made for.
    (request, scope) =>
      request.method === "HEAD"
        ? send(request, scope)
        : followed(request, scope),
    {
      clock,
      allowsPlainHttp: isPlainHttp,
      tokenServers: options.tokenServers,
    },
  );
  return { send, authorizer, isPlainHttp, close: () => transport.close() };
}
