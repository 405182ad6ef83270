import type {
  Digest,
  FoundModule,
  ManifestBytes,
  ModuleFile,
  ModuleSource,
  RequestScope,
  Warning,
} from "../../ports.js";
import type { Blobs } from "../blobs.js";
import type { ManifestBlobs } from "../manifest-blobs.js";
import { namingSource } from "../naming.js";
import { refuse } from "../refuse.js";
import type { StoredBlob } from "../store/blob-store.js";
import { unhurried } from "../unhurried.js";
import type { UseLog } from "../use-log.js";
import type { StepCredential } from "./credential.js";
import type { Credentials } from "./credentials.js";
import { identityOf } from "./identity.js";
import type { Image, Images, Layer } from "./images.js";
import type { LayerAccess } from "./layer-access.js";
import type { PackedModules } from "./packed-modules.js";
import type { Puller } from "./registry.js";
import type { Tags } from "./tags.js";

/** What a step names in a registry. */
export type OciSource = Extract<ModuleSource, { type: "OCI" }>;

/** The data of a step credential by its name; null = the step has none of that name. */
export type CredentialReader = (name: string) => StepCredential["data"] | null;

/** A module that was found, and what came with it. */
export interface FoundInRegistry {
  readonly module: FoundModule;
  readonly manifestDigest: Digest;
  /** What users should know; null = nothing. */
  readonly warning: Warning | null;
  /** The manifest in the artifact; null = there is none. Nobody may write to its bytes. */
  readManifest(scope: RequestScope): Promise<ManifestBytes | null>;
}

/** Finds modules in OCI registries. */
export interface OciModules {
  /** @throws LoaderError, its reason alone */
  resolve(
    source: OciSource,
    credentialOf: CredentialReader,
    scope: RequestScope,
  ): Promise<FoundInRegistry>;
}

/** What {@link createOciModules} works with. */
export interface OciModulesParts {
  readonly credentials: Credentials;
  readonly images: Images;
  readonly layers: LayerAccess;
  readonly tags: Tags;
  readonly blobs: Blobs;
  readonly packed: PackedModules;
  readonly manifests: ManifestBlobs;
  readonly maxModuleBytes: number;
  readonly used: Pick<UseLog, "used">;
}

export function createOciModules(parts: OciModulesParts): OciModules {
  const { credentials, images, layers, tags, blobs, packed } = parts;

  async function pullerOf(
    { ref, credentials: name }: OciSource,
    credentialOf: CredentialReader,
    scope: RequestScope,
  ): Promise<Puller> {
    const step = name === null ? null : stepCredential(name, credentialOf);
    const { registry: host, repository } = ref;
    const credential = await credentials.credentialFor(
      host,
      repository,
      step,
      scope,
    );
    return { at: ref, credential, identity: identityOf(credential) };
  }

  async function imageOf(
    { ref, expectedDigest }: OciSource,
    puller: Puller,
    scope: RequestScope,
  ): Promise<{ image: Image; warning: Warning | null }> {
    const { digest, tag } = ref;
    if (digest !== null) {
      // The tag beside a digest is for people. Admission holds the two digests to be equal.
      if (expectedDigest !== null && expectedDigest !== digest)
        throw refuse(
          "expected-digest-mismatch",
          `the reference is pinned to ${digest}, module.oci.expectedDigest is ${expectedDigest}`,
        );
      const image = await images.pinned(digest, puller, scope);
      return { image, warning: null };
    }
    if (tag === null)
      throw refuse(
        "artifact-invalid",
        "the reference has no tag and no digest",
      );
    return await tags.resolve({ ...ref, tag }, expectedDigest, puller, scope);
  }

  /** Which module a layer holds; for a packed one it must be here to tell. */
  async function contentOf(
    { module: layer, form }: Image,
    puller: Puller,
    scope: RequestScope,
  ): Promise<{ digest: Digest; locate: () => Promise<StoredBlob> }> {
    checkSize(layer, parts.maxModuleBytes);
    const origin = await layers.originOf(layer, puller, scope);
    const delivered = (await origin.mustDeliver())
      ? await blobs.obtain(layer.digest, origin, scope)
      : null;
    const here = { ...origin, mustDeliver: () => Promise.resolve(false) };
    switch (form) {
      case "wasm": {
        const { digest } = layer;
        return {
          digest,
          locate: async () =>
            delivered ?? (await blobs.obtain(digest, here, unhurried())),
        };
      }
      case "tar": {
        const { digest } =
          packed.known(layer.digest) ??
          (await packed.unpack(layer.digest, here, scope));
        return {
          digest,
          locate: () => packed.unpack(layer.digest, here, unhurried()),
        };
      }
    }
  }

  return {
    async resolve(source, credentialOf, scope) {
      const puller = await pullerOf(source, credentialOf, scope);
      const { image, warning } = await imageOf(source, puller, scope);
      const { module: layer, manifest: manifestLayer } = image;
      const { digest, locate } = await contentOf(image, puller, scope);
      for (const each of [image.digest, layer.digest, manifestLayer?.digest])
        if (each !== undefined) parts.used.used(each);
      const description = describeImage(source, image);
      return {
        module: {
          digest,
          description,
          locate: () =>
            namingSource(description, async (): Promise<ModuleFile> => ({
              ...(await locate()),
              description,
            })),
        },
        manifestDigest: image.digest,
        warning,
        async readManifest(asking) {
          if (manifestLayer === null) return null;
          return await parts.manifests.obtain(
            manifestLayer.digest,
            "layer",
            await layers.originOf(manifestLayer, puller, asking),
            asking,
          );
        },
      };
    },
  };
}

/** Before any request: a reference to a credential that is not there is no wish to be anonymous. */
function stepCredential(
  name: string,
  credentialOf: CredentialReader,
): StepCredential {
  const data = credentialOf(name);
  if (data !== null) return { name, data };
  throw refuse(
    "pull-credential-missing",
    `module.oci.credentials names ${JSON.stringify(name)}, expected a credential of that name on the pipeline step, got none`,
  );
}

function checkSize({ sizeBytes }: Layer, maxModuleBytes: number): void {
  if (sizeBytes === 0) throw refuse("module-empty", "its layer has no bytes");
  if (sizeBytes <= maxModuleBytes) return;
  throw refuse(
    "module-too-large",
    `its layer has ${sizeBytes} bytes, --max-module-size allows ${maxModuleBytes}`,
  );
}

/** With the digest that a tag led to, so that every message and log line tells which one it was. */
function describeImage({ ref }: OciSource, { digest }: Image): string {
  return ref.digest === null ? `OCI ${ref.text}@${digest}` : `OCI ${ref.text}`;
}
