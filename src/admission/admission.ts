import type {
  Logger,
  ManifestBytes,
  ModuleSource,
  RedirectFence,
  RequestScope,
  SourceParsers,
} from "../ports.js";
import type {
  CompiledPolicy,
  PolicyEngine,
  Principal,
} from "./cedar/policy.js";
import type { CompositeResource } from "./composite.js";
import { AdmissionError } from "./error.js";
import { admitInput, type AdmittedInput, type InputCeilings } from "./input.js";
import type { JsonObject } from "./json.js";
import { createManifestCache } from "./manifest/manifest-cache.js";
import type { ModuleManifest } from "./manifest/manifest.js";
import type { FromChoice } from "./module-choice.js";
import { readModuleFrom } from "./module-from.js";
import { fenceChosenSource, fenceRedirect } from "./policy/fence.js";
import { grantRequirements, type Grants } from "./policy/grant.js";
import { type Asker, createLayer, type Layer } from "./policy/layer.js";
import { policyRemarks } from "./policy/remarks.js";
import { refuseUnverifiable } from "./policy/signature.js";

/** What admission works with. */
export interface AdmissionOptions {
  readonly ceilings: InputCeilings;
  readonly parsers: SourceParsers;
  readonly engine: PolicyEngine;
  /** The operator layer's policy as it is now; null = the runtime has none. */
  readonly operatorPolicy: () => CompiledPolicy | null;
}

/** What a step runs. */
export type ChosenSource =
  /** Nothing: the composite resource left the field unset, and the Input allows it. */
  | { readonly kind: "empty" }
  | {
      readonly kind: "module";
      readonly source: ModuleSource;
      /** The compositionPolicy; null when the Input has none. */
      readonly policy: CompiledPolicy | null;
      /** Null when the Input's author chose the module: he is trusted with where its URL leads. */
      readonly redirectFence: RedirectFence | null;
    };

/** A module that asks for something. */
export interface GrantRequest {
  readonly source: ModuleSource;
  readonly manifest: ModuleManifest;
  /** What messages call the module. */
  readonly module: string;
  readonly compositionPolicy: CompiledPolicy | null;
  readonly xr: CompositeResource;
}

/** Whether a step may run, and with what: the same for the server and for `validate`. */
export interface Admission {
  /** @throws AdmissionError */
  readInput(input: JsonObject): AdmittedInput;
  /**
   * Compiles the compositionPolicy, reads the source that the Input or the XR names, and holds an
   * XR-chosen one to the policy. What the operator policy wants signed is refused.
   * @throws AdmissionError policy-invalid, from-unset, from-invalid, source-refused, pull-refused,
   *   spend-refused, signature-unverifiable
   */
  chooseSource(
    input: AdmittedInput,
    xr: CompositeResource,
    logger: Logger,
    scope?: RequestScope,
  ): Promise<ChosenSource>;
  /**
   * What the author of the compositionPolicy may not have meant, a line each.
   * @throws AdmissionError policy-invalid, policy-unavailable
   */
  remarks(input: AdmittedInput): Promise<readonly string[]>;
  /**
   * Reads a module's manifest, once for each digest.
   * @throws AdmissionError manifest-invalid
   */
  readManifest(manifest: ManifestBytes, module: string): ModuleManifest;
  /**
   * Decides what a manifest requires by both policy layers.
   * @throws AdmissionError as of {@link grantRequirements}
   */
  grant(
    request: GrantRequest,
    logger: Logger,
    scope?: RequestScope,
  ): Promise<Grants>;
}

/** Admission over one policy engine; it holds nothing that needs closing. */
export function createAdmission(options: AdmissionOptions): Admission {
  const { ceilings, parsers, engine } = options;
  const manifests = createManifestCache();

  async function fence(
    { pathText }: FromChoice,
    source: ModuleSource,
    policy: CompiledPolicy | null,
    xr: CompositeResource,
    asker: Asker,
  ): Promise<RedirectFence | null> {
    if (source.type === "Path") return null;
    // INVARIANT: admitInput refuses an Input that lets the XR choose such a source without one.
    if (policy === null)
      throw new AdmissionError("policy-missing", "no compositionPolicy");
    const layer = layerFor("composition", policy, xr, asker);
    await fenceChosenSource(source, pathText, layer);
    if (source.type === "OCI") return null;
    // Fetches are shared and outlive requests.
    const lasting = layerFor("composition", policy, xr, {
      ...asker,
      scope: null,
    });
    return {
      key: JSON.stringify([policy.hash, xr.namespace, xr.kind, pathText]),
      admit: (url) => fenceRedirect(url, pathText, lasting),
    };
  }

  return {
    readInput: (input) => admitInput(input, ceilings, parsers),

    async chooseSource(input, xr, logger, scope) {
      const asker = { engine, logger, scope: scope ?? null };
      const { compositionPolicy, module } = input;
      const policy =
        compositionPolicy === null
          ? null
          : await compileComposition(compositionPolicy, asker);
      const chosen =
        module.kind === "static"
          ? { kind: "source" as const, source: module.source }
          : readModuleFrom(module, xr, parsers, ceilings);
      if (chosen.kind === "empty") return chosen;
      const { source } = chosen;
      const redirectFence =
        module.kind === "from"
          ? await fence(module, source, policy, xr, asker)
          : null;
      const operatorPolicy = options.operatorPolicy();
      if (operatorPolicy !== null)
        await refuseUnverifiable(source, operatorPolicy, asker);
      return { kind: "module", source, policy, redirectFence };
    },

    async remarks({ compositionPolicy: text }) {
      if (text === null) return [];
      return policyRemarks(
        await compileComposition(text, { engine, scope: null }),
        "composition",
      );
    },

    readManifest(manifest, module) {
      const result = manifests.get(manifest);
      if (result.kind === "ok") return result.value;
      throw new AdmissionError(
        "manifest-invalid",
        `module ${module}: its manifest is invalid: ${result.message}`,
      );
    },

    async grant(request, logger, scope) {
      const asker = { engine, logger, scope: scope ?? null };
      const { compositionPolicy, manifest, module, source, xr } = request;
      const layerOf = (
        name: "composition" | "operator",
        policy: CompiledPolicy | null,
      ) => (policy === null ? null : layerFor(name, policy, xr, asker));
      const pullCredential = source.type === "OCI" ? source.credentials : null;
      return await grantRequirements(manifest, module, pullCredential, {
        composition: layerOf("composition", compositionPolicy),
        operator: layerOf("operator", options.operatorPolicy()),
      });
    },
  };
}

async function compileComposition(
  text: string,
  { engine, scope }: Pick<Asker, "engine" | "scope">,
): Promise<CompiledPolicy> {
  const result = await engine.compile(text, "composition", scope);
  if (result.kind === "ok") return result.policy;
  throw new AdmissionError(
    "policy-invalid",
    `compositionPolicy is invalid: cannot compile the compositionPolicy as Cedar: ${result.message}`,
  );
}

function layerFor(
  name: "composition" | "operator",
  policy: CompiledPolicy,
  xr: CompositeResource,
  asker: Asker,
): Layer {
  const principal: Principal = { namespace: xr.namespace, xrKind: xr.kind };
  return createLayer(name, policy, principal, asker);
}
