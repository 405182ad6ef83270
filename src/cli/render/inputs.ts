import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { quoted } from "../../errors.js";
import { FileError } from "../files/error.js";
import { member, optionalText, path, text, texts } from "../files/fields.js";
import {
  type Manifest,
  readManifest,
  readManifests,
} from "../files/manifest.js";
import { readFileText } from "../files/text.js";
import { readYaml } from "../files/yaml.js";
import { readPipeline, type Step, type StepCredential } from "./composition.js";
import { type FunctionTargets, readFunctions } from "./functions.js";

/** Everything that goes into a pipeline, read and checked. */
export interface RenderInputs {
  readonly xr: Manifest;
  readonly steps: readonly Step[];
  readonly targets: FunctionTargets;
  /** By the name that the pipeline knows each composed resource by. */
  readonly observed: ReadonlyMap<string, Manifest>;
  /** Where what a function requires is looked for. */
  readonly pool: readonly Manifest[];
  readonly context: JsonObject;
  /** The data of the Secret that a step's credential refers to. */
  readonly credentialData: ReadonlyMap<StepCredential, SecretData>;
}

/** What a Secret holds. */
export type SecretData = Readonly<Record<string, Uint8Array>>;

/** Where the inputs are; `null` and an empty list mean that there is none. */
export interface InputLocations {
  readonly xr: string;
  readonly composition: string;
  readonly functions: string;
  readonly target: string | null;
  readonly observedResources: string | null;
  readonly requiredResources: readonly string[];
  readonly functionCredentials: string | null;
  /** Key and text; of two with one key, the later counts. */
  readonly contextValues: readonly (readonly [string, string])[];
  /** Key and file; a context value with that key goes before it. */
  readonly contextFiles: readonly (readonly [string, string])[];
}

/** The annotation that says which composed resource of the pipeline an object is. */
export const RESOURCE_NAME_ANNOTATION =
  "crossplane.io/composition-resource-name";

/**
 * Reads the files of a render.
 * @throws FileError file-unreadable, file-invalid
 */
export async function readInputs(
  locations: InputLocations,
): Promise<RenderInputs> {
  const xr = await readManifest(locations.xr);
  text(path(xr.root, "metadata", "name"));
  const composition = await readManifest(locations.composition);
  const steps = readPipeline(composition, xr);
  const targets = readFunctions(
    await readManifests(locations.functions),
    locations.functions,
    steps.map((step) => step.functionName),
    locations.target,
  );
  const pools = await Promise.all(
    locations.requiredResources.map(readManifests),
  );
  return {
    xr,
    steps,
    targets,
    observed: byResourceName(await optional(locations.observedResources)),
    pool: pools.flat(),
    context: await readContext(locations),
    credentialData: findCredentials(
      steps,
      await optional(locations.functionCredentials),
    ),
  };
}

async function optional(location: string | null): Promise<Manifest[]> {
  return location === null ? [] : readManifests(location);
}

function byResourceName(manifests: readonly Manifest[]): Map<string, Manifest> {
  const observed = new Map<string, Manifest>();
  for (const manifest of manifests) {
    const field = path(
      manifest.root,
      "metadata",
      "annotations",
      RESOURCE_NAME_ANNOTATION,
    );
    const name = text(field);
    if (observed.has(name)) {
      throw new FileError(
        "file-invalid",
        `${field.where}: two observed resources are named ${quoted(name)}`,
      );
    }
    observed.set(name, manifest);
  }
  return observed;
}

async function readContext(locations: InputLocations): Promise<JsonObject> {
  const context: [string, JsonValue][] = [];
  for (const [key, file] of locations.contextFiles) {
    context.push([key, onlyValue(await readFileText(file), file)]);
  }
  for (const [key, value] of locations.contextValues) {
    context.push([key, onlyValue(value, `--context-values ${key}`)]);
  }
  return Object.fromEntries(context);
}

function onlyValue(yaml: string, source: string): JsonValue {
  const documents = readYaml(yaml, source);
  if (documents.length > 1) {
    throw new FileError(
      "file-invalid",
      `${source}: expected one value, got ${documents.length} documents`,
    );
  }
  return documents[0]?.value ?? null;
}

function findCredentials(
  steps: readonly Step[],
  secrets: readonly Manifest[],
): Map<StepCredential, SecretData> {
  for (const { root, apiVersion, kind } of secrets) {
    if (apiVersion === "v1" && kind === "Secret") continue;
    throw new FileError(
      "file-invalid",
      `${root.where}: expected a v1 Secret, got ${apiVersion} ${kind}`,
    );
  }
  const found = new Map<StepCredential, SecretData>();
  for (const step of steps) {
    for (const credential of step.credentials) {
      const { secretName, secretNamespace } = credential;
      const secret = secrets.find(
        ({ name, namespace }) =>
          name === secretName && namespace === secretNamespace,
      );
      if (secret === undefined) {
        throw new FileError(
          "file-invalid",
          `the step ${quoted(step.name)} needs the Secret ${quoted(`${secretNamespace}/${secretName}`)}, which is not in the files of --function-credentials`,
        );
      }
      found.set(credential, secretData(secret));
    }
  }
  return found;
}

/** `stringData` goes before `data`, as in a cluster. Values never appear in messages. */
function secretData({ root }: Manifest): SecretData {
  const data = member(root, "data");
  const entries = [...texts(data).keys()].map((key): [string, Uint8Array] => {
    const field = member(data, key);
    const base64 = optionalText(field).replace(/[\r\n]/g, "");
    const bytes = Buffer.from(base64, "base64");
    if (bytes.toString("base64") !== base64) {
      throw new FileError("file-invalid", `${field.where}: expected base64`);
    }
    return [key, bytes];
  });
  const plain = [...texts(member(root, "stringData"))].map(
    ([key, value]): [string, Uint8Array] => [key, Buffer.from(value)],
  );
  return Object.fromEntries([...entries, ...plain]);
}
