import type { InputCeilings } from "../../../src/admission/index.js";
import {
  chosenModule,
  DIGEST,
  httpModule,
  limited,
  ociModule,
  pathModule,
  type RefusedRow,
  rowsOf,
  taggedModule,
} from "./row.js";

export interface RuntimeRow extends RefusedRow {
  /** What the operator set, where that is why. */
  readonly ceilings?: Partial<InputCeilings>;
}

/** What only whoever knows the operator's flags can refuse. */
const BY_FLAGS: readonly RuntimeRow[] = [
  {
    name: "a timeout above --module-timeout",
    fields: limited({ timeout: "31s" }),
    ceilings: { timeoutMs: 30_000, timeoutText: "30s" },
    says: "limits.timeout 31s exceeds",
  },
  ...["2Gi", 2 ** 31, "1e1000"].map((memory) => ({
    name: `memory of ${String(memory)}, above --module-memory-limit`,
    fields: limited({ memory }),
    ceilings: { memoryBytes: 2 ** 30, memoryText: "1Gi" },
    says: `limits.memory ${String(memory)} exceeds`,
  })),
  ...[pathModule(), chosenModule("Path")].map((fields) => ({
    name: `${JSON.stringify(fields)} without --module-dir`,
    fields,
    ceilings: { moduleDirSet: false },
    says: "the runtime has no --module-dir",
  })),
  {
    name: "a tag alone without --allow-unpinned-tags",
    fields: taggedModule(),
    says: "--allow-unpinned-tags",
  },
];

/** What arithmetic and real parsers see, and patterns do not. */
const BY_VALUE: readonly RuntimeRow[] = [
  {
    name: "a timeout beyond the 64 bits of a Go duration",
    fields: limited({ timeout: "9223372037s" }),
    says: "longer than the 292 years",
  },
  {
    name: "a timeout that rounds to 0 nanoseconds",
    fields: limited({ timeout: "0.1ns" }),
    says: "limits.timeout: expected more than 0",
  },
  ...rowsOf(
    "module.oci.ref",
    [
      ...["a.b:65536/c", "a..b/c", "a.-b/c", "127.1/c", "0x7f.1/c", "[:::]/c"],
      ...["[::ffff:7f00:1]/c", "[64:ff9b::a00:1]/c", "[2002:a00:1::1]/c"],
      ...["Example/greeter", `${"a".repeat(64)}.b/c`, `${"a.".repeat(127)}b/c`],
      `a.b/${"c".repeat(256)}`,
    ],
    (ref) => ociModule({ ref: `${ref}@${DIGEST}` }),
  ),
  ...rowsOf(
    "module.http.url",
    [
      ...["http://example.com/a", "http://localhost.example.com/a"],
      ...["https://user@example.com/a", "https://user:pw@example.com/a"],
      ...["https://example.com:0/a", "https://example.com:65536/a"],
      ...["https://example.com//a", "https://example.com/a%2Fb"],
      ...["https://example.com/a/..;/b", "https://[::ffff:127.0.0.1]/a"],
      ...["https://example.com/a%00", "https://example.com/%ff"],
      ...["https://example.com/\u00a0", "https://example.com/\u200b"],
      ...["https://%/a", "https://a..b/c", "https://[::1/a"],
      // Longer once it is escaped.
      `https://example.com/${"é".repeat(1000)}`,
    ],
    (url) => httpModule({ url }),
  ),
];

/** The runtime counts UTF-16 units or bytes, Kubernetes characters; and blanks are more than ASCII's. */
const BY_CHARACTER: readonly RuntimeRow[] = [
  ...rowsOf("module.path", ["😀".repeat(4096)], (path) => pathModule({ path })),
  ...rowsOf("module.manifestPath", ["😀".repeat(4096)], (manifestPath) =>
    pathModule({ manifestPath }),
  ),
  ...rowsOf("module.from", [`spec["${"😀".repeat(1000)}"]`], (from) =>
    chosenModule("Path", { from }),
  ),
  ...rowsOf(
    "compositionPolicy",
    [`//${"é".repeat(1024 * 1024 - 2)}`, "\u00a0", "\ufeff\u2028"],
    (compositionPolicy) => ({ ...ociModule(), compositionPolicy }),
  ),
];

/** What the CRD cannot judge: it admits, the runtime refuses. */
export const runtimeOnlyRows = [...BY_FLAGS, ...BY_VALUE, ...BY_CHARACTER];
