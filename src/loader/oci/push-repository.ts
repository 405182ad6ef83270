import { escaped } from "../../errors.js";
import { refusalOf } from "../http/status.js";
import type { HttpResponse, Send } from "../http/transport.js";
import { refuse } from "../refuse.js";

/** A repository that is pushed to. */
export interface PushRepository {
  /** What messages call it. */
  readonly who: string;
  /** `https://registry/v2/repository/`, or http. */
  readonly baseUrl: URL;
  /** To the registry, with what it wants to see. */
  readonly send: Send;
  /** To every other origin, without any credential. */
  readonly sendElsewhere: Send;
  /** What the beginning of an answer's body says, if it repeats nothing that was sent. */
  readonly wordsOf: (response: HttpResponse, bodyStart: Uint8Array) => string;
}

/**
 * Does nothing when the answer has the one status that means success; its body is then the
 * caller's to read or discard.
 * @throws LoaderError by the status
 */
export async function expectStatus(
  response: HttpResponse,
  expected: number,
  { who, baseUrl, wordsOf }: PushRepository,
): Promise<void> {
  const { status, url } = response;
  if (status === expected) return;
  const isRegistry = url.origin === baseUrl.origin;
  const from = isRegistry ? who : `${who} sent on to ${escaped(url.host)}`;
  if (status >= 200 && status <= 299) {
    await response.discard();
    throw refuse(
      "answer-invalid",
      `${from}: expected HTTP ${expected}, got ${status}`,
    );
  }
  // A registry may send us anywhere: what is said there is not for whoever pushes.
  const words = (start: Uint8Array): string =>
    isRegistry ? wordsOf(response, start) : "";
  const refusal = await refusalOf(response, from, words);
  // No module is missing: it is the repository, or what was pushed to it.
  throw status === 404 ? refuse("registry-refused", refusal.message) : refusal;
}
