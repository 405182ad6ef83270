import type {
  HttpRequest,
  HttpResponse,
  Send,
} from "../../../../src/loader/http/transport.js";
import type { RequestScope } from "../../../../src/ports.js";

/** What a server of the script answers. */
export interface ScriptedAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  /** Text is sent as UTF-8; text that is not there is no body. */
  readonly body?: string | Uint8Array;
  /** Where redirects led; the URL asked, when there were none. */
  readonly url?: string;
}

/** A `Send` that a test answers, and what it was asked. */
export interface ScriptedSend {
  readonly send: Send;
  readonly requests: readonly HttpRequest[];
  readonly scopes: readonly RequestScope[];
  /** Answers whose body nobody has read, broken off or discarded. */
  readonly unfinished: () => number;
}

/** @param answer is given each request, and how many came before it */
export function scriptedSend(
  answer: (
    request: HttpRequest,
    index: number,
  ) => ScriptedAnswer | Promise<ScriptedAnswer>,
): ScriptedSend {
  const requests: HttpRequest[] = [];
  const scopes: RequestScope[] = [];
  const finished = new Set<number>();
  return {
    requests,
    scopes,
    unfinished: () => requests.length - finished.size,
    async send(request, scope) {
      const index = requests.push(request) - 1;
      scopes.push(scope);
      const answered = await answer(request, index);
      return responseOf(request, answered, () => finished.add(index));
    },
  };
}

function responseOf(
  request: HttpRequest,
  answer: ScriptedAnswer,
  finish: () => void,
): HttpResponse {
  const { body = "", headers = {}, status, url = request.url } = answer;
  return {
    url: new URL(url),
    status,
    headers: (name) => headers[name] ?? [],
    body: (async function* () {
      try {
        await Promise.resolve();
        yield Buffer.from(body);
      } finally {
        finish();
      }
    })(),
    discard() {
      finish();
      return Promise.resolve();
    },
  };
}
