import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

import { quoted } from "../../errors.js";
import { RenderError } from "./error.js";
import { isObject, objectOrEmpty } from "../files/fields.js";
import { RESOURCE_NAME_ANNOTATION } from "./inputs.js";
import type { Manifest } from "../files/manifest.js";

const COMPOSITE_LABEL = "crossplane.io/composite";
const CLAIM_LABELS = [
  "crossplane.io/claim-namespace",
  "crossplane.io/claim-name",
];

/**
 * A desired composed resource with the metadata that Crossplane adds: names, labels, owner.
 * @param observed the same resource as it exists, whose names it keeps
 * @throws RenderError desired-invalid
 */
export function composedResource(
  name: string,
  desired: JsonObject | undefined,
  xr: Manifest,
  observed: Manifest | undefined,
): JsonObject {
  for (const field of ["apiVersion", "kind"]) {
    const value = desired?.[field];
    if (typeof value === "string" && value !== "") continue;
    throw new RenderError(
      "desired-invalid",
      `the pipeline desires a composed resource ${quoted(name)} without ${field}`,
    );
  }
  const metadata = { ...objectOrEmpty(desired?.["metadata"]) };
  if (observed !== undefined) keepNames(metadata, observed);

  const root = xr.labels.get(COMPOSITE_LABEL) ?? xr.name;
  if (isUnset(metadata["name"]) && isUnset(metadata["generateName"])) {
    metadata["generateName"] = `${root}-`;
  }
  if (xr.namespace !== "") metadata["namespace"] = xr.namespace;
  return {
    ...desired,
    metadata: {
      ...metadata,
      annotations: {
        ...objectOrEmpty(metadata["annotations"]),
        [RESOURCE_NAME_ANNOTATION]: name,
      },
      labels: {
        ...objectOrEmpty(metadata["labels"]),
        [COMPOSITE_LABEL]: root,
        ...claimLabels(xr),
      },
      ownerReferences: ownerReferences(name, metadata, xr),
    },
  };
}

/** A resource that exists keeps the name it was given. */
function keepNames(metadata: JsonObject, { root }: Manifest): void {
  const observed = objectOrEmpty(objectOrEmpty(root.value)["metadata"]);
  for (const field of ["name", "namespace", "generateName"]) {
    const value = observed[field];
    if (value === undefined) Reflect.deleteProperty(metadata, field);
    else metadata[field] = value;
  }
}

/** Which claim all this is for: as the composite resource's labels say, else its claimRef. */
function claimLabels(xr: Manifest): JsonObject {
  const labels = CLAIM_LABELS.map((label) => xr.labels.get(label) ?? "");
  const spec = objectOrEmpty(xr.object["spec"]);
  const claim = objectOrEmpty(spec["claimRef"]);
  const reference = [claim["namespace"], claim["name"]];
  const values = labels.every((label) => label !== "") ? labels : reference;
  if (values.some((value) => typeof value !== "string")) return {};
  return Object.fromEntries(
    CLAIM_LABELS.map((label, i) => [label, values[i] ?? ""]),
  );
}

function ownerReferences(
  name: string,
  metadata: JsonObject,
  xr: Manifest,
): JsonValue[] {
  const uid = objectOrEmpty(xr.object["metadata"])["uid"] ?? "";
  const existing = metadata["ownerReferences"];
  const others = (Array.isArray(existing) ? existing : []).filter(
    (owner) => isObject(owner) && owner["uid"] !== uid,
  );
  if (others.some((owner) => isObject(owner) && owner["controller"] === true)) {
    throw new RenderError(
      "desired-invalid",
      `the composed resource ${quoted(name)} is controlled by something else than the composite resource`,
    );
  }
  const ours = {
    apiVersion: xr.apiVersion,
    kind: xr.kind,
    name: xr.name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  return [...others, ours];
}

function isUnset(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || value === "";
}
