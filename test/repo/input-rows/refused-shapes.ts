import type { JsonObject, JsonValue } from "../../../src/admission/index.js";
import {
  chosenModule,
  DIGEST,
  httpModule,
  limited,
  objectOf,
  ociModule,
  OTHER_DIGEST,
  pathModule,
  POLICY,
  type RefusedRow,
  rowsOf,
  TYPES,
  MODULE_URL,
} from "./row.js";

const NOT_OBJECTS: readonly JsonValue[] = [5, true, "text", []];

const MISSING: readonly RefusedRow[] = [
  { name: "no module", fields: {}, says: "module is required" },
  {
    name: "module null",
    fields: { module: null },
    says: "module is required",
  },
  {
    name: "an empty module",
    fields: { module: {} },
    says: "module.type is required",
  },
  {
    name: "no module.type",
    fields: { module: objectOf("Path") },
    says: "module.type is required",
  },
  {
    name: "module.type null",
    fields: pathModule({ type: null }),
    says: "module.type is required",
  },
  {
    name: "nothing but a module.type that does not exist",
    fields: { module: { type: "Git" } },
    says: "module.type: expected",
  },
  {
    name: "an OCI module without ref",
    fields: { module: { type: "OCI", oci: {} } },
    says: "module.oci.ref is required",
  },
  {
    name: "an OCI module with ref null",
    fields: ociModule({ ref: null }),
    says: "module.oci.ref is required",
  },
  {
    name: "an HTTP module without url",
    fields: { module: { type: "HTTP", http: { digest: DIGEST } } },
    says: "module.http.url is required",
  },
  {
    name: "an HTTP module without digest",
    fields: { module: { type: "HTTP", http: { url: MODULE_URL } } },
    says: "module.http.digest is required",
  },
];

const WRONG_OBJECTS: readonly RefusedRow[] = [
  ...rowsOf("metadata", NOT_OBJECTS, (metadata) => ({
    ...pathModule(),
    metadata,
  })),
  ...rowsOf("module", NOT_OBJECTS, (module) => ({ module })),
  ...rowsOf("module.oci", NOT_OBJECTS, (oci) => ({
    module: { type: "OCI", oci },
  })),
  ...rowsOf("module.http", NOT_OBJECTS, (http) => ({
    module: { type: "HTTP", http },
  })),
  ...rowsOf("limits", NOT_OBJECTS, (limits) => limited(limits)),
  ...rowsOf("config", NOT_OBJECTS, (config) => ({ ...pathModule(), config })),
];

/** Exactly one object, the one of the type, or from. */
const WRONG_SOURCES: readonly RefusedRow[] = TYPES.flatMap((type) => [
  {
    name: `no object with type ${type}`,
    fields: { module: { type }, compositionPolicy: POLICY },
    says: "is required with module.type",
  },
  {
    name: `from beside the object of type ${type}`,
    fields: chosenModule(type, objectOf(type)),
    says: "are both set",
  },
  ...TYPES.filter((other) => other !== type).flatMap((other) => [
    {
      name: `the object of ${other} with type ${type}`,
      fields: { module: { type, ...objectOf(other) } },
      says: "does not go with module.type",
    },
    {
      name: `the objects of ${type} and ${other} with type ${type}`,
      fields: { module: { type, ...objectOf(type), ...objectOf(other) } },
      says: "does not go with module.type",
    },
    {
      name: `from and the object of ${other} with type ${type}`,
      fields: chosenModule(type, objectOf(other)),
      says: "does not go with module.type",
    },
  ]),
]);

const WRONG_TOGETHER: readonly RefusedRow[] = [
  ...(["OCI", "HTTP"] as const).flatMap((type) => [
    {
      name: `${type} chosen by the XR without a compositionPolicy`,
      fields: { module: { type, from: "status.module" } },
      says: "has no compositionPolicy",
    },
    ...rowsOf(
      "compositionPolicy",
      [null, "", " \n"],
      (compositionPolicy): JsonObject => ({
        ...chosenModule(type, { from: `spec.${type}` }),
        compositionPolicy,
      }),
    ),
    {
      name: `manifestPath with ${type} chosen by the XR`,
      fields: chosenModule(type, { manifestPath: "wasmfn.yaml" }),
      says: "module.manifestPath does not go with module.type",
    },
    {
      name: `manifestPath with type ${type}`,
      fields: {
        module: { type, ...objectOf(type), manifestPath: "wasmfn.yaml" },
      },
      says: "module.manifestPath does not go with module.type",
    },
  ]),
  ...[{}, { from: null }].map((extra) => ({
    name: `allowEmpty with ${JSON.stringify(extra)}`,
    fields: pathModule({ allowEmpty: true, ...extra }),
    says: "module.allowEmpty is set but module.from is not",
  })),
  {
    name: "expectedDigest that is not the pin",
    fields: ociModule({ expectedDigest: OTHER_DIGEST }),
    says: "is pinned to",
  },
  {
    name: "manifestURL without manifestDigest",
    fields: httpModule({ manifestURL: MODULE_URL }),
    says: "module.http.manifestDigest is not",
  },
  {
    name: "manifestDigest without manifestURL",
    fields: httpModule({ manifestURL: null, manifestDigest: DIGEST }),
    says: "module.http.manifestURL is not",
  },
];

/** Whatever their value: a misspelt fence must not fall away. */
const UNKNOWN: readonly RefusedRow[] = [null, "text", {}].flatMap((unknown) => [
  ...[
    { name: "the Input", fields: { ...pathModule(), unknown } },
    { name: "module", fields: pathModule({ unknown }) },
    { name: "module.oci", fields: ociModule({ unknown }) },
    { name: "module.http", fields: httpModule({ unknown }) },
    { name: "limits", fields: limited({ unknown }) },
  ].map(({ name, fields }) => ({
    name: `${JSON.stringify(unknown)} in an unknown field of ${name}`,
    fields,
    says: "unknown field",
  })),
]);

const MISSPELT: readonly RefusedRow[] = [
  ...["compositionpolicy", "composition_policy", "Limits", "spec"].map(
    (field) => ({
      name: `${field} in the Input`,
      fields: { ...ociModule(), [field]: POLICY },
      says: "unknown field",
    }),
  ),
  ...["ref", "url", "digest", "credentials", "From", "OCI"].map((field) => ({
    name: `${field} in module`,
    fields: pathModule({ [field]: "text" }),
    says: "unknown field",
  })),
  {
    name: "__proto__ in module",
    fields: pathModule(JSON.parse('{"__proto__": {}}') as JsonObject),
    says: "unknown field",
  },
  ...["policy", "sandbox"].flatMap((field) =>
    [null, {}, POLICY].map((value) => ({
      name: `${field}, which was removed, set to ${JSON.stringify(value)}`,
      fields: { ...pathModule(), [field]: value },
      says: "was removed",
    })),
  ),
];

/** Inputs with fields that are missing, unknown, no objects, or not to be set together. */
export const refusedShapes = [
  ...MISSING,
  ...WRONG_OBJECTS,
  ...WRONG_SOURCES,
  ...WRONG_TOGETHER,
  ...UNKNOWN,
  ...MISSPELT,
];
