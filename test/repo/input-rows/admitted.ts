import {
  chosenModule,
  DIGEST,
  httpModule,
  type InputRow,
  limited,
  ociModule,
  OTHER_DIGEST,
  pathModule,
  POLICY,
  rowsOf,
  taggedModule,
  TYPES,
  MODULE_URL,
} from "./row.js";

const WHOLE_INPUTS: readonly InputRow[] = [
  { name: "a Path", fields: pathModule() },
  { name: "an OCI module", fields: ociModule() },
  { name: "an HTTP module", fields: httpModule() },
  {
    name: "every field that a Path has",
    fields: {
      metadata: { name: "greeter", labels: { a: "b" } },
      ...pathModule({ manifestPath: "wasmfn.yaml", allowEmpty: false }),
      compositionPolicy: POLICY,
      limits: { timeout: "5s", memory: "128Mi", concurrency: 3 },
      config: { greeting: "hello", list: [1, null, { deep: true }] },
    },
  },
  {
    name: "every field that an OCI module has",
    fields: {
      ...ociModule({ expectedDigest: DIGEST, credentials: "registry" }),
      compositionPolicy: POLICY,
    },
  },
  {
    name: "every field that an HTTP module has",
    fields: {
      ...httpModule({ manifestURL: MODULE_URL, manifestDigest: OTHER_DIGEST }),
      compositionPolicy: POLICY,
    },
  },
  ...TYPES.map((type) => ({
    name: `${type} chosen by the XR`,
    fields: chosenModule(type),
  })),
  {
    name: "Path chosen by the XR, which needs no fence",
    fields: { ...chosenModule("Path"), compositionPolicy: null },
  },
  {
    name: "Path chosen by the XR, with the Input's manifest",
    fields: chosenModule("Path", { manifestPath: "wasmfn.yaml" }),
  },
  ...[true, false].map((allowEmpty) => ({
    name: `allowEmpty ${String(allowEmpty)} with from`,
    fields: chosenModule("OCI", { allowEmpty }),
  })),
  {
    name: "allowEmpty false without from",
    fields: pathModule({ allowEmpty: false }),
  },
  {
    name: "a tag held to a digest",
    fields: taggedModule({ expectedDigest: DIGEST }),
  },
  {
    name: "a tag alone, with the operator's leave",
    fields: taggedModule(),
    allowUnpinnedTags: true,
  },
  {
    name: "a compositionPolicy that is no Cedar, which is for the compiler",
    fields: { ...ociModule(), compositionPolicy: "no Cedar" },
  },
  {
    name: "a compositionPolicy of 1 MiB",
    fields: { ...ociModule(), compositionPolicy: "/".repeat(1024 * 1024) },
  },
  { name: "limits without any", fields: limited({}) },
  { name: "an empty config", fields: { ...pathModule(), config: {} } },
];

const NULLS: readonly InputRow[] = [
  {
    name: "null for every optional field of the Input",
    fields: {
      ...pathModule(),
      metadata: null,
      compositionPolicy: null,
      limits: null,
      config: null,
    },
  },
  {
    name: "null for every other field of a Path",
    fields: pathModule({
      oci: null,
      http: null,
      from: null,
      allowEmpty: null,
      manifestPath: null,
    }),
  },
  {
    name: "null for every optional field of an OCI module",
    fields: ociModule({ expectedDigest: null, credentials: null }),
  },
  {
    name: "null for every optional field of an HTTP module",
    fields: httpModule({ manifestURL: null, manifestDigest: null }),
  },
  {
    name: "null for every limit",
    fields: limited({ timeout: null, memory: null, concurrency: null }),
  },
];

const VALUES: readonly InputRow[] = [
  ...rowsOf(
    "module.oci.ref",
    [
      ...["ubuntu", "library/ubuntu", "docker.io/example/greeter"],
      ...["GHCR.IO/example/greeter", "LocalHost/greeter", "localhost:5000/a"],
      ...["ghcr.io:443/example/greeter", "ghcr.io./example/greeter"],
      ...["[::1]:5000/a", "[2001:db8::A]/a", "127.0.0.1:5000/a", "a-b.c/d"],
      ...["a.b/c.d_e__f---g/h", "a.b/c:v1", "a.b/c:V_1.2-3", "a.b/c:_"],
      `a.b/c:${"t".repeat(128)}`,
    ],
    (ref) => ociModule({ ref: `${ref}@${DIGEST}` }),
  ),
  ...rowsOf(
    "module.oci.credentials",
    ["a", "registry", "REGISTRY_1", "a.b-c", "9", "a".repeat(253)],
    (credentials) => ociModule({ credentials }),
  ),
  ...rowsOf(
    "module.http.url",
    [
      ...["HTTPS://example.com", "https://example.com:8443/a/b.wasm?c=d&e"],
      ...["http://localhost/a", "http://127.0.0.1:8080/", "http://[::1]"],
      ...["https://example.com/caf%C3%A9", "https://bücher.example/ü"],
      `https://example.com/${"a".repeat(4076)}`,
    ],
    (url) => httpModule({ url }),
  ),
  ...rowsOf(
    "module.path",
    ["a", "dir/a.wasm", "/modules/a.wasm", " ", "a".repeat(4096)],
    (path) => pathModule({ path }),
  ),
  ...rowsOf(
    "module.from",
    [
      ...["spec.module", "status.module", "spec.a.b-c._d", "status.list[0]"],
      ...['spec["a.b"]', 'status["a"][9999]["b"]', 'spec[""]', 'spec["["]'],
      String.raw`spec["\"\\\/\b\f\n\r\t\u00Ff"]`,
      ...['spec["é\u2028😀"].x', `spec${".a".repeat(31)}`],
      `spec.${"a".repeat(1019)}`,
    ],
    (from) => chosenModule("OCI", { from }),
  ),
  ...rowsOf(
    "limits.timeout",
    [
      ...["5s", "1h30m", "1.5s", ".5s", "5.s", "+5s", "1s1s", "0h5m", "5m0s"],
      ...["1ns", "1us", "1\u00b5s", "1\u03bcs", "1ms", "0.000001ms"],
      `${"0".repeat(126)}5s`,
    ],
    (timeout) => limited({ timeout }),
  ),
  ...rowsOf(
    "limits.memory",
    [
      ...["128Mi", "0.5Gi", ".5Gi", "5.", "+1Gi", "500M", "134217728", "100m"],
      ...["1e3", "1E3", "1E", "1e+3", "1e-3", "1e1000", "1e-01000", "1n", "1u"],
      ...["1k", "1G", "1T", "1P", "1Ki", "1Ti", "1Pi", "1Ei", "0.0001"],
      `${"0".repeat(125)}1Mi`,
      ...[1, 134217728],
    ],
    (memory) => limited({ memory }),
  ),
  ...rowsOf(
    "limits.concurrency",
    [1, 64, Number.MAX_SAFE_INTEGER],
    (concurrency) => limited({ concurrency }),
  ),
];

/** Inputs that nothing is wrong with. */
export const admittedRows = [...WHOLE_INPUTS, ...NULLS, ...VALUES];
