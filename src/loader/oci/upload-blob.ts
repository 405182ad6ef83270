import type { Digest, RequestScope } from "../../ports.js";
import { LoaderError } from "../error.js";
import type { HttpBody, Send } from "../http/transport.js";
import { refuse } from "../refuse.js";
import { expectStatus, type PushRepository } from "./push-repository.js";
import { uploadUrl } from "./upload-location.js";

/** A blob that a repository is to have. */
export interface PushedBlob {
  readonly digest: Digest;
  readonly sizeBytes: number;
  readonly body: HttpBody;
}

/**
 * Puts a blob in one piece into a repository, unless it is there.
 * @throws LoaderError
 */
export async function uploadBlob(
  blob: PushedBlob,
  repository: PushRepository,
  scope: RequestScope,
): Promise<"exists" | "pushed"> {
  if (await hasBlob(blob, repository, scope)) return "exists";
  const url = await openUpload(blob, repository, scope);
  await putBlob(blob, url, repository, scope);
  return "pushed";
}

/**
 * Only a plain yes spares the upload. Whatever else the answer is, a redirect to storage or a
 * failure, an upload does no harm, and its answers have words.
 */
async function hasBlob(
  { digest }: PushedBlob,
  { baseUrl, send }: PushRepository,
  scope: RequestScope,
): Promise<boolean> {
  const url = new URL(`blobs/${digest}`, baseUrl);
  const response = await send(
    { method: "HEAD", url, headers: {}, body: null },
    scope,
  );
  await response.discard();
  return response.status === 200;
}

async function openUpload(
  { digest }: PushedBlob,
  repository: PushRepository,
  scope: RequestScope,
): Promise<URL> {
  const url = new URL("blobs/uploads/", repository.baseUrl);
  const response = await repository.send(
    { method: "POST", url, headers: {}, body: null },
    scope,
  );
  await expectStatus(response, 202, repository);
  await response.discard();
  return uploadUrl(response, digest, repository.who);
}

async function putBlob(
  { body }: PushedBlob,
  url: URL,
  repository: PushRepository,
  scope: RequestScope,
): Promise<void> {
  // What the registry trusts us by is for the registry alone (C39).
  const isRegistry = url.origin === repository.baseUrl.origin;
  const send = isRegistry ? repository.send : sendingOn(repository);
  const headers = { "content-type": "application/octet-stream" };
  const response = await send({ method: "PUT", url, headers, body }, scope);
  await expectStatus(response, 201, repository);
  await response.discard();
}

/** To whoever pushes, where the registry sends an upload means nothing by itself. */
function sendingOn({ sendElsewhere, who }: PushRepository): Send {
  return async (request, scope) => {
    try {
      return await sendElsewhere(request, scope);
    } catch (thrown) {
      if (!(thrown instanceof LoaderError)) throw thrown;
      const { code, message } = thrown;
      throw refuse(code, `${who} sent on to ${message}`, thrown);
    }
  };
}
