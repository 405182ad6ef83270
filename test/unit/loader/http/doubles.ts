import type {
  HttpRequest,
  HttpResponse,
  Send,
} from "../../../../src/loader/http/transport.js";
import type { RequestScope } from "../../../../src/ports.js";
import { createRequestScope } from "../../../../src/request-scope.js";

/** An answer that says what was done with it. */
export interface FakeResponse extends HttpResponse {
  readonly discards: number;
  /** Chunks that were taken from the body. */
  readonly taken: number;
  /** The body was left before its end. */
  readonly isBrokenOff: boolean;
}

export function answer(
  options: {
    status?: number;
    headers?: Readonly<Record<string, readonly string[]>>;
    chunks?: readonly Uint8Array[];
    /** Thrown after the chunks. */
    failure?: Error;
  } = {},
): FakeResponse {
  const { status = 200, headers = {}, chunks = [], failure } = options;
  const state = { discards: 0, taken: 0, isBrokenOff: false };

  // eslint-disable-next-line @typescript-eslint/require-await -- bodies are asynchronous
  async function* body() {
    let isAtEnd = false;
    try {
      for (const chunk of chunks) {
        state.taken += 1;
        yield chunk;
      }
      isAtEnd = true;
      if (failure !== undefined) throw failure;
    } finally {
      state.isBrokenOff = !isAtEnd;
    }
  }

  return Object.assign(state, {
    url: new URL("https://h.test/asked"),
    status,
    headers: (name: string) => headers[name] ?? [],
    body: body(),
    discard() {
      state.discards += 1;
      return Promise.resolve();
    },
  });
}

/** Answers with what it was given, one after the other, and remembers what it was asked. */
export function scripted(
  ...script: readonly (HttpResponse | Error)[]
): Send & { readonly requests: HttpRequest[] } {
  const left = [...script];
  const requests: HttpRequest[] = [];
  const send: Send = (request) => {
    requests.push(request);
    const next = left.shift();
    if (next === undefined) throw new Error("there was one request too many");
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(next);
  };
  return Object.assign(send, { requests });
}

export function get(
  url: string,
  overrides: Partial<Omit<HttpRequest, "url">> = {},
): HttpRequest {
  return {
    method: "GET",
    url: new URL(url),
    headers: {},
    body: null,
    ...overrides,
  };
}

export function endless(): RequestScope {
  return createRequestScope({ deadlineAtMs: Infinity });
}
