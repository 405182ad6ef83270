import type {
  Clock,
  Digest,
  Logger,
  OciReference,
  RequestScope,
} from "../ports.js";
import { answeringWithin } from "./http/answering-within.js";
import { following } from "./http/redirects.js";
import { retrying } from "./http/retrying.js";
import type { HttpResponse, Send } from "./http/transport.js";
import { createTransport } from "./http/undici-transport.js";
import { sleep } from "./http/wait.js";
import { naming } from "./naming.js";
import { buildArtifact, type PublishedModule } from "./oci/artifact.js";
import { createAuthorizer, type Authorized } from "./oci/authorizer.js";
import { createCredentials } from "./oci/credentials.js";
import { identityOf } from "./oci/identity.js";
import {
  inspectArtifact,
  type InspectedArtifact,
} from "./oci/inspect-artifact.js";
import { createRegistry } from "./oci/registry.js";
import { pushArtifact, type PushProgress } from "./oci/upload.js";
import { createIsPlainHttp, type SchemeOptions } from "./registry-scheme.js";

/** A module to be published. */
export interface Publication {
  /** Without digest; without tag it can be found by its digest only. */
  readonly ref: OciReference;
  readonly module: PublishedModule;
  /** A file with the module's bytes. */
  readonly modulePath: string;
  /** The module's manifest as JSON; null = it has none. */
  readonly manifestJson: Uint8Array | null;
  readonly annotations: ReadonlyMap<string, string>;
  readonly created: Date;
  /** Whether a tag that leads to something else may be moved. */
  readonly overwrite: boolean;
  readonly onProgress: (event: PushProgress) => void;
}

/** Puts modules into registries, and looks at what is there, as the owner of a Docker config. */
export interface Publisher {
  /**
   * Publishes a module as an OCI artifact. Nothing is pushed twice.
   * @returns what its manifest is pinned by
   * @throws LoaderError whose message begins with `cannot push`
   */
  push(publication: Publication, scope: RequestScope): Promise<Digest>;
  /**
   * What a reference with a tag or digest leads to, without its module.
   * @throws LoaderError whose message begins with `cannot inspect`
   */
  inspect(ref: OciReference, scope: RequestScope): Promise<InspectedArtifact>;
  close(): Promise<void>;
}

/** How registries are spoken to, and who speaks. */
export interface PublisherOptions extends SchemeOptions {
  /** As `dockerConfigFileOf` gives it; null = none. */
  readonly dockerConfigFile: string | null;
  /** What credential helpers are run with. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const ANSWER_MS = 30_000;

/** Makes a publisher; nothing is sent. */
export function createPublisher(
  options: PublisherOptions,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): Publisher {
  const isPlainHttp = createIsPlainHttp(options);
  const credentials = createCredentials({ ...options, clock, logger });
  const transport = createTransport(options, clock);
  const send = retrying(patient(transport.send, clock), {
    clock,
    sleep,
    random: Math.random,
  });
  const authorizer = createAuthorizer(
    following(send, () => undefined),
    {
      clock,
      allowsPlainHttp: isPlainHttp,
      tokenServers: options.tokenServers,
    },
  );
  const registry = createRegistry(authorizer, isPlainHttp);

  const credentialFor = (ref: OciReference, scope: RequestScope) =>
    credentials.credentialFor(ref.registry, ref.repository, null, scope);

  return {
    push: (publication, scope) =>
      naming(`cannot push ${publication.ref.text}`, async () => {
        const { ref, modulePath, onProgress, overwrite } = publication;
        const credential = await credentialFor(ref, scope);
        const access = { ...ref, actions: "pull,push", credential } as const;
        const said = new WeakMap<HttpResponse, Authorized["wordsOf"]>();
        const { digest } = await pushArtifact(
          buildArtifact(publication),
          { modulePath },
          { ...ref, overwrite },
          {
            async send(request, asking) {
              const sent = await authorizer.send(request, access, asking);
              said.set(sent.response, sent.wordsOf);
              return sent.response;
            },
            wordsOf: (response, start) => said.get(response)?.(start) ?? "",
            sendElsewhere: send,
            plainHttp: isPlainHttp(ref.registry),
            onProgress,
          },
          scope,
        );
        return digest;
      }),

    inspect: (ref, scope) =>
      naming(`cannot inspect ${ref.text}`, async () => {
        const credential = await credentialFor(ref, scope);
        const identity = identityOf(credential);
        const puller = { at: ref, credential, identity };
        return await inspectArtifact(ref, registry, puller, scope);
      }),

    close: () => transport.close(),
  };
}

/**
 * Gives up on a server that does not begin to answer. What is large takes as long as its line needs;
 * the transport gives up on it when nothing moves any more.
 */
function patient(send: Send, clock: Clock): Send {
  const bounded = answeringWithin(send, ANSWER_MS, clock);
  return (request, scope) =>
    request.body?.kind === "file"
      ? send(request, scope)
      : bounded(request, scope);
}
