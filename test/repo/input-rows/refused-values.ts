import type { JsonValue } from "../../../src/admission/index.js";
import {
  chosenModule,
  DIGEST,
  HEX,
  httpModule,
  limited,
  ociModule,
  pathModule,
  type RefusedRow,
  rowsOf,
  taggedModule,
  MODULE_URL,
} from "./row.js";

const NOT_TEXTS: readonly JsonValue[] = [5, true, {}, ["a"]];
const NOT_DIGESTS: readonly JsonValue[] = [
  ...["", HEX, `sha256:${HEX.slice(1)}`, `${DIGEST}0`, ` ${DIGEST}`],
  ...[`sha256:${HEX.toUpperCase()}`, `SHA256:${HEX}`, `sha512:${HEX}${HEX}`],
  ...[`${DIGEST}\n`, ...NOT_TEXTS],
];
const NOT_URLS: readonly JsonValue[] = [
  ...["", "example.com/a", "//example.com/a", "https:/example.com/a"],
  ...["https://", "ftp://example.com/a", "file:///a", "oci://a.b/c"],
  ...[
    ` ${MODULE_URL}`,
    `${MODULE_URL} `,
    `${MODULE_URL}\n`,
    "https://example.com/a b",
  ],
  ...[`${MODULE_URL}#`, `${MODULE_URL}#a`, String.raw`https://example.com\a`],
  ...[`https://example.com/${"a".repeat(4077)}`, ...NOT_TEXTS],
];
const NOT_PATHS: readonly JsonValue[] = ["", "a".repeat(4097), ...NOT_TEXTS];

const WHOLE_INPUT: readonly RefusedRow[] = [
  ...rowsOf(
    "apiVersion",
    [
      ...["wasm.fn.crossplane.io/v2", "wasm.fn.crossplane.io/V1", "v1", ""],
      ...["wasm.fn.crossplane.io", "example.com/v1", null, ...NOT_TEXTS],
    ],
    (apiVersion) => ({ ...pathModule(), apiVersion }),
  ),
  ...rowsOf("kind", ["input", "Inputs", "", null, ...NOT_TEXTS], (kind) => ({
    ...pathModule(),
    kind,
  })),
  ...rowsOf(
    "compositionPolicy",
    ["", " ", "\t\r\n", "/".repeat(1024 * 1024 + 1), ...NOT_TEXTS],
    (compositionPolicy) => ({ ...ociModule(), compositionPolicy }),
  ),
];

const MODULE: readonly RefusedRow[] = [
  ...rowsOf(
    "module.type",
    ["", "oci", "http", "path", "PATH", "Git", "Path ", ...NOT_TEXTS],
    (type) => pathModule({ type }),
  ),
  ...rowsOf("module.path", NOT_PATHS, (path) => pathModule({ path })),
  ...rowsOf("module.manifestPath", NOT_PATHS, (manifestPath) =>
    pathModule({ manifestPath }),
  ),
  ...rowsOf(
    "module.from",
    [
      ...["", "spec", "status", "spec.", ".spec.a", "metadata.name", "Spec.a"],
      ...["spec.a.", "spec..a", "spec.a b", "spec.0a", "spec.é", "specs.a"],
      ...["spec[a]", "spec['a']", 'spec["a]', 'spec["a"', 'spec["a"]b'],
      ...["spec[", "spec[]", "spec[-1]", "spec[01]", "spec[10000]", "spec[0"],
      ...['spec["\n"]', String.raw`spec["\x"]`, String.raw`spec["\u12"]`],
      ...[" spec.a", "spec.a ", "spec.a\n", `spec${".a".repeat(32)}`],
      ...[`spec.${"a".repeat(1020)}`, ...NOT_TEXTS],
    ],
    (from) => chosenModule("OCI", { from }),
  ),
  ...rowsOf("module.allowEmpty", ["true", "", 0, 1, {}, [true]], (allowEmpty) =>
    chosenModule("OCI", { allowEmpty }),
  ),
];

const OCI: readonly RefusedRow[] = [
  ...rowsOf(
    "module.oci.ref",
    [
      ...["a.b/C", "a.b/c..d", "a.b/-c", "a.b/c_", "a.b/c___d", "a.b//c", "/a"],
      ...["a.b/", "a.b/c/", "a.b:0/c", "a.b:x/c", "a.b/%63", "a.b/é", ""],
      ...["-.b/c", "[::1/c", "[::1]c", "[/c"],
      ...["user:pw@ghcr.io/c", "ghcr.io#.evil.example/c", "ghcr.io?y/c"],
      ...["https://ghcr.io/c", "oci://ghcr.io/c", String.raw`a.b\c`],
      ...[" a.b/c", "a.b/c ", "a.b/c:", "a.b/c:v1:v2", "a.b/c:-v"],
      ...[`a.b/c:${"t".repeat(129)}`, `a.b/c@${DIGEST}`],
      `a.b/${"c".repeat(949)}`,
    ],
    (ref) => ociModule({ ref: `${ref}@${DIGEST}` }),
  ),
  ...rowsOf(
    "module.oci.ref",
    [
      ...["", "a.b/c", "a.b/c:", "a.b/c@", `a.b/c@sha256:${HEX.slice(1)}`],
      ...[`a.b/c@sha256:${HEX.toUpperCase()}`, `a.b/c@sha512:${HEX}${HEX}`],
      ...[`a.b/c@${DIGEST}\n`, `a.b/c@${DIGEST} `, "a.b/c:v1\n"],
    ],
    // With it a tag alone would do.
    (ref) => ociModule({ ref, expectedDigest: DIGEST }),
  ),
  ...rowsOf("module.oci.ref", NOT_TEXTS, (ref) => ociModule({ ref })),
  ...rowsOf("module.oci.expectedDigest", NOT_DIGESTS, (expectedDigest) =>
    taggedModule({ expectedDigest }),
  ),
  ...rowsOf(
    "module.oci.credentials",
    [
      ...["", "-a", "a-", ".a", "a b", "a/b", "é", "a\n", "a".repeat(254)],
      ...NOT_TEXTS,
    ],
    (credentials) => ociModule({ credentials }),
  ),
];

const HTTP: readonly RefusedRow[] = [
  ...rowsOf("module.http.url", NOT_URLS, (url) => httpModule({ url })),
  ...rowsOf("module.http.digest", NOT_DIGESTS, (digest) =>
    httpModule({ digest }),
  ),
  ...rowsOf("module.http.manifestURL", NOT_URLS, (manifestURL) =>
    httpModule({ manifestURL, manifestDigest: DIGEST }),
  ),
  ...rowsOf("module.http.manifestDigest", NOT_DIGESTS, (manifestDigest) =>
    httpModule({ manifestURL: MODULE_URL, manifestDigest }),
  ),
];

const LIMITS: readonly RefusedRow[] = [
  ...rowsOf(
    "limits.timeout",
    [
      ...["", "0", "0s", "0h0m", "-5s", "-0s", "5", "1d", "s", ".s", "5 s"],
      ...[" 5s", "5s ", "5s\n", "5S", "1h-5m", "++5s", "1e3s", "0x5s", "5,5s"],
      ...["Infinity", "1.5.5s", `${"0".repeat(127)}5s`, ...NOT_TEXTS],
    ],
    (timeout) => limited({ timeout }),
  ),
  ...rowsOf(
    "limits.memory",
    [
      ...["", "0", "0Mi", "0.0", "0e5", "-1", "-1Mi", "Mi", ".", "+", "1 Gi"],
      ...["128mi", "128MiB", "128MB", " 128Mi", "128Mi ", "128Mi\n", "1K"],
      ...["1ki", "1e", "1e1001", "1e-1001", "1e1.5", "1.5.5", "++1", "0x10"],
      ...["1_000", "Infinity", `${"0".repeat(126)}1Mi`, 0, -1, 1.5, true],
      ...[{}, ["1Mi"]],
    ],
    (memory) => limited({ memory }),
  ),
  ...rowsOf(
    "limits.concurrency",
    [0, -1, 1.5, Number.MAX_SAFE_INTEGER + 1, "1", true, {}, [1]],
    (concurrency) => limited({ concurrency }),
  ),
];

/** Inputs with one field whose value is wrong. */
export const refusedValues = [
  ...WHOLE_INPUT,
  ...MODULE,
  ...OCI,
  ...HTTP,
  ...LIMITS,
];
