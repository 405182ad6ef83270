import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAlias, isNode, parseDocument, visit } from "yaml";
import {
  AdmissionError,
  admitInput,
  type InputCeilings,
  type JsonObject,
} from "../../src/admission/index.js";
import { sourceParsers } from "../support/source-parsers.js";
import {
  createCrdJudge,
  readCrd,
  type StructuralSchema,
} from "../support/crd.js";
import {
  type Constraint,
  constraintsOf,
} from "../support/schema-constraints.js";
import { structuralProblems } from "../support/structural-schema.js";
import { textOf } from "./committed-files.js";
import { admittedRows } from "./input-rows/admitted.js";
import { runtimeOnlyRows } from "./input-rows/differences.js";
import { refusedShapes } from "./input-rows/refused-shapes.js";
import { refusedValues } from "./input-rows/refused-values.js";
import {
  chosenModule,
  DIGEST,
  httpModule,
  type InputRow,
  limited,
  ociModule,
} from "./input-rows/row.js";

const FILE = "package/input/wasm.fn.crossplane.io_inputs.yaml";
const CRD = readCrd(textOf(FILE));
const VERSIONS = CRD.spec.versions.map(({ name }) => name);
const REFUSED = [...refusedShapes, ...refusedValues];
const CONSTRAINTS = constraintsOf(
  CRD.spec.versions[0]?.schema.openAPIV3Schema ?? {},
);
const REFUSAL = expect.stringMatching(/^refused: ./) as unknown;

/** So high that no row is refused by them. */
const CEILINGS: InputCeilings = {
  timeoutMs: Infinity,
  timeoutText: "for ever",
  memoryBytes: Infinity,
  memoryText: "everything",
  moduleDirSet: true,
  allowUnpinnedTags: false,
};

/** What something else refuses as well: these are for editors, and bound what CEL rules may cost. */
const REDUNDANT = new Set([
  // The version is looked up by both before its schema is.
  ...[" required apiVersion", "apiVersion type", "apiVersion enum"],
  ...[" required kind", "kind type", "kind enum"],
  "module.type type",
  // A CEL rule cannot be evaluated without.
  ...[" required module", "module required type"],
  // The pattern bounds the length.
  "module.oci.expectedDigest maxLength",
  "module.oci.credentials maxLength",
  "module.http.digest maxLength",
  "module.http.manifestDigest maxLength",
]);

const judge = createCrdJudge(CRD);

describe(FILE, () => {
  it("is the definition of Input, whose two versions are served", () => {
    const definition = structuredClone(CRD) as unknown as {
      spec: { versions: { schema?: unknown }[] };
    };
    for (const version of definition.spec.versions) delete version.schema;

    expect(definition).toEqual({
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "inputs.wasm.fn.crossplane.io" },
      spec: {
        group: "wasm.fn.crossplane.io",
        names: {
          kind: "Input",
          listKind: "InputList",
          plural: "inputs",
          singular: "input",
          categories: ["crossplane"],
        },
        scope: "Namespaced",
        versions: [
          { name: "v1", served: true, storage: true },
          {
            name: "v1beta1",
            served: true,
            storage: false,
            deprecated: true,
            // Kubernetes wants one line of at most 256 characters.
            deprecationWarning: expect.stringMatching(
              /^\S.{1,254}\S$/,
            ) as unknown,
          },
        ],
      },
    });
  });

  it("has one schema for both versions", () => {
    const [v1, v1beta1] = CRD.spec.versions.map(({ schema }) => schema);

    expect(v1beta1).toEqual(v1);
  });

  it("has no YAML anchors and aliases, which not every tool keeps", () => {
    const found: unknown[] = [];
    visit(parseDocument(textOf(FILE)), (_key, node) => {
      if (isAlias(node) || (isNode(node) && "anchor" in node && node.anchor))
        found.push(node);
    });

    expect(found).toEqual([]);
  });

  it.each(VERSIONS)("has a structural schema in %s", (version) => {
    expect(structuralProblems(schemaOf(version))).toEqual([]);
  });

  it.each(CONSTRAINTS.filter(({ name }) => !REDUNDANT.has(name)))(
    "refuses something by nothing but its $name",
    (constraint) => {
      expect(admittedWithout(constraint)).not.toEqual([]);
    },
  );

  it.each(CONSTRAINTS.filter(({ name }) => REDUNDANT.has(name)))(
    "refuses nothing by its $name alone",
    (constraint) => {
      expect(admittedWithout(constraint)).toEqual([]);
    },
  );

  describe.each(VERSIONS)("and the runtime, about %s", (version) => {
    it.each(admittedRows)("admit $name", (row) => {
      expect(byCrd(version, row)).toBe("admitted");
      expect(byRuntime(version, row)).toBe("admitted");
    });

    it.each(REFUSED)("refuse $name", (row) => {
      expect(byCrd(version, row)).toEqual(REFUSAL);
      expect(byRuntime(version, row)).toEqual(REFUSAL);
      expect(byRuntime(version, row)).toContain(row.says);
    });

    it.each(runtimeOnlyRows)(
      "differ: only the runtime refuses $name",
      (row) => {
        expect(byCrd(version, row)).toBe("admitted");
        expect(byRuntime(version, row, row.ceilings)).toContain(row.says);
      },
    );
  });

  it.each([{ name: "apiVersion" }, { name: "kind" }])(
    "and the runtime refuse an Input without $name",
    ({ name }) => {
      const input = { ...inputOf("v1", ociModule()) };
      Reflect.deleteProperty(input, name);

      expect(judge(input).kind).toBe("refused");
      expect(runtimeVerdict(input, CEILINGS)).toContain(name);
    },
  );

  it.each([
    {
      field: "module.from",
      first: ["spec", "status.a", "x"],
      parts: ['["a.b"]', '["\\n"]', ...'.a [0] [ ] " . é 0'.split(" ")],
      fieldsWith: (from: string) => chosenModule("OCI", { from }),
    },
    {
      field: "module.oci.credentials",
      first: ["a", "-"],
      parts: [" ", ..."a Z 9 - . _ / é".split(" ")],
      fieldsWith: (credentials: string) => ociModule({ credentials }),
    },
    {
      field: "limits.memory",
      first: ["1", "0", "+.5", "-1"],
      parts: "0 1 25 . e E - + Mi k m i".split(" "),
      fieldsWith: (memory: string) => limited({ memory }),
    },
  ])("and the runtime say the same of any $field", (property) => {
    const seen = new Set<string>();

    fc.assert(
      fc.property(textOfParts(property), (text) => {
        const row = { name: text, fields: property.fieldsWith(text) };
        const verdict = kindOf(byRuntime("v1", row));
        seen.add(verdict);
        expect(kindOf(byCrd("v1", row))).toBe(verdict);
      }),
      { numRuns: 500 },
    );

    expect([...seen].sort()).toEqual(["admitted", "refused"]);
  });

  it.each([
    {
      field: "module.oci.ref",
      first: ["a:1", "A.b/c:1", `a@${DIGEST}`, "é"],
      parts: [`@${DIGEST}`, ..."a A.b / : 1 _ - [::1] é".split(" ")],
      fieldsWith: (ref: string) => ociModule({ ref }),
    },
    {
      field: "module.http.url",
      first: ["https://a", "HTTP://localhost", "ftp://a"],
      parts: "a .b / : 1 ? # %2e @ \\ é".split(" "),
      fieldsWith: (url: string) => httpModule({ url }),
    },
    {
      field: "limits.timeout",
      first: ["1s", "0", ".5h", "+1m", "-1s"],
      parts: "0 1 25 . s m ns \u00b5s h - + d".split(" "),
      fieldsWith: (timeout: string) => limited({ timeout }),
    },
  ])("admits any $field that the runtime admits", (property) => {
    const seen = new Set<string>();

    fc.assert(
      fc.property(textOfParts(property), (text) => {
        const fields = property.fieldsWith(text);
        const row = { name: text, fields, allowUnpinnedTags: true };
        const verdict = kindOf(byRuntime("v1", row));
        seen.add(verdict);
        if (verdict === "admitted") expect(byCrd("v1", row)).toBe("admitted");
      }),
      { numRuns: 500 },
    );

    expect([...seen].sort()).toEqual(["admitted", "refused"]);
  });

  it("has enough rows", () => {
    expect(admittedRows.length).toBeGreaterThan(100);
    expect(REFUSED.length).toBeGreaterThan(250);
    expect(CONSTRAINTS.length).toBeGreaterThan(60);
  });
});

function schemaOf(version: string): StructuralSchema {
  const found = CRD.spec.versions.find(({ name }) => name === version);
  return found?.schema.openAPIV3Schema ?? {};
}

function inputOf(version: string, fields: JsonObject): JsonObject {
  const apiVersion = `wasm.fn.crossplane.io/${version}`;
  return { apiVersion, kind: "Input", ...fields };
}

function byCrd(version: string, { fields }: InputRow): string {
  const verdict = judge(inputOf(version, fields));
  return verdict.kind === "refused" ? `refused: ${verdict.reason}` : "admitted";
}

function byRuntime(
  version: string,
  { fields, allowUnpinnedTags = false }: InputRow,
  ceilings: Partial<InputCeilings> = {},
): string {
  return runtimeVerdict(inputOf(version, fields), {
    ...CEILINGS,
    allowUnpinnedTags,
    ...ceilings,
  });
}

function runtimeVerdict(input: JsonObject, ceilings: InputCeilings): string {
  try {
    admitInput(input, ceilings, sourceParsers);
    return "admitted";
  } catch (error) {
    if (!(error instanceof AdmissionError)) throw error;
    return `refused: ${error.message}`;
  }
}

function kindOf(verdict: string): string {
  return verdict.split(":")[0] ?? "";
}

/** One of `first`, then any of `parts`. */
function textOfParts(from: {
  readonly first: readonly string[];
  readonly parts: readonly string[];
}): fc.Arbitrary<string> {
  return fc
    .tuple(
      fc.constantFrom(...from.first),
      fc.array(fc.constantFrom(...from.parts), { maxLength: 5 }),
    )
    .map(([first, parts]) => first + parts.join(""));
}

/** The refused rows that a CRD without the constraint admits. */
function admittedWithout({ remove }: Constraint): string[] {
  const crd = structuredClone(CRD);
  for (const { schema } of crd.spec.versions) remove(schema.openAPIV3Schema);
  const judgeWithout = createCrdJudge(crd);
  return REFUSED.filter(
    ({ fields }) => judgeWithout(inputOf("v1", fields)).kind === "admitted",
  ).map(({ name }) => name);
}
