import type {
  Digest,
  ManifestBytes,
  OciReference,
  RequestScope,
} from "../../ports.js";
import { collect, digestOf } from "../chunks.js";
import { refuse } from "../refuse.js";
import type { Descriptor } from "./descriptor.js";
import { identified } from "./images.js";
import { chooseLayers } from "./layer.js";
import { readManifest } from "./manifest.js";
import type { Puller, Registry } from "./registry.js";

/** What a registry has under a reference. Its texts are the publisher's: to be escaped. */
export interface InspectedArtifact {
  readonly digest: Digest;
  readonly mediaType: string;
  readonly sizeBytes: number;
  readonly config: Descriptor;
  /** At most 128, in the manifest's order. */
  readonly layers: readonly InspectedLayer[];
  readonly annotations: ReadonlyMap<string, string>;
  /** The module's manifest, which nobody has read yet; null = it has none. */
  readonly moduleManifest: ManifestBytes | null;
}

/** A layer, and what the runtime takes it for. */
export interface InspectedLayer extends Descriptor {
  readonly role: "module" | "module-in-tar" | "module-manifest" | "other";
}

/**
 * Asks for the manifest, and for that of the module in it, and for no module.
 * @throws LoaderError, its reason alone
 */
export async function inspectArtifact(
  ref: OciReference,
  registry: Registry,
  puller: Puller,
  scope: RequestScope,
): Promise<InspectedArtifact> {
  const wanted = ref.digest ?? ref.tag;
  if (wanted === null)
    throw refuse("artifact-invalid", "the reference has no tag and no digest");
  const delivered = await registry.manifest(wanted, puller, scope);
  const { bytes, contentType, digest } = identified(delivered, puller.at);
  if (ref.digest !== null && ref.digest !== digest) {
    throw refuse(
      "digest-mismatch",
      `the registry delivered a manifest with digest ${digest}, expected ${ref.digest}`,
    );
  }
  const manifest = readManifest(bytes, contentType);
  const { module, form, manifestLayer } = chooseLayers(manifest);
  const roleOf = (layer: Descriptor): InspectedLayer["role"] => {
    if (layer === manifestLayer) return "module-manifest";
    if (layer !== module) return "other";
    return form === "tar" ? "module-in-tar" : "module";
  };
  return {
    digest,
    mediaType: manifest.mediaType,
    sizeBytes: bytes.length,
    config: manifest.config,
    layers: manifest.layers.map((layer) => ({ ...layer, role: roleOf(layer) })),
    annotations: manifest.annotations,
    moduleManifest:
      manifestLayer &&
      (await fetchManifest(manifestLayer, registry, puller, scope)),
  };
}

async function fetchManifest(
  { digest, sizeBytes }: Descriptor,
  registry: Registry,
  puller: Puller,
  scope: RequestScope,
): Promise<ManifestBytes> {
  const { chunks } = await registry.blob(digest, sizeBytes, puller, scope);
  const bytes = await collect(chunks);
  const got = digestOf(bytes);
  if (got === digest) return { form: "layer", bytes, digest };
  throw refuse(
    "digest-mismatch",
    `its module's manifest: expected ${digest}, got ${got}`,
  );
}
