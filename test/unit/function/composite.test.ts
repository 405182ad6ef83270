import type { JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

import {
  compositeFromJson,
  type PathSegment,
} from "../../../src/admission/index.js";
import {
  maxFieldBytes,
  readComposite,
} from "../../../src/function/composite.js";
import { scanRequest } from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { concat, deepStruct, requestBytes } from "./fixtures.js";
import { decodePlain, jsonOf } from "./plain-decoder.js";
import {
  anyKey,
  double,
  join,
  message,
  mistyped,
  shuffled,
  some,
  structFields,
  text,
  unknownField,
  varint,
  type Part,
} from "./wire-parts.js";

const anyResource = shuffled(
  some(
    structFields.map((parts) => message(1, parts)),
    2,
  ),
  some(fc.constantFrom(message(2, [text(1, "k")]), varint(3, 1))),
  some(fc.oneof(unknownField, mistyped(1)), 1),
);
const anyState = shuffled(
  some(
    anyResource.map((parts) => message(1, parts)),
    2,
  ),
  some(fc.constant(message(2, [text(1, "composed"), message(2, [])])), 1),
  some(fc.oneof(unknownField, mistyped(1)), 1),
);
const anyRequest = shuffled(
  some(anyState.map((parts) => message(2, parts))),
  some(fc.constantFrom(text(5, ""), message(1, [text(1, "tag")]))),
  some(fc.oneof(unknownField, mistyped(2)), 1),
).map(join);

const anyPath = fc.array(fc.oneof(anyKey, fc.integer({ min: -1, max: 3 })), {
  maxLength: 4,
});

/** Paths to everything that is in `value`, breadth first, and to some that is not. */
function pathsInto(value: JsonValue): PathSegment[][] {
  const open: { path: PathSegment[]; value: JsonValue }[] = [
    { path: [], value },
  ];
  for (const { path, value: at } of open) {
    if (open.length > 200 || typeof at !== "object" || at === null) continue;
    const children: [PathSegment, JsonValue][] = Array.isArray(at)
      ? [...at.entries()]
      : Object.entries(at);
    for (const [segment, inner] of children)
      open.push({ path: [...path, segment], value: inner });
  }
  return open.flatMap(({ path }) => [path, [...path, "nothing"], [...path, 0]]);
}

/** The request of a composite resource whose Struct has these bytes. */
function requestOf(...structs: readonly Uint8Array[]) {
  const resource = structs.map((struct) => bytesField(1, struct));
  const observed = bytesField(2, bytesField(1, concat(...resource)));
  return scanRequest(concat(requestBytes(), observed));
}

function entry(key: string, ...value: readonly Part[]): Uint8Array {
  return message(1, [text(1, key), message(2, value)]).wire;
}

/** The fields of a Struct, or else of a Value, that has `value` at `path`. */
function nested(
  path: readonly PathSegment[],
  value: readonly Part[],
): readonly Part[] {
  const [segment, ...rest] = path;
  if (segment === undefined) return value;
  const inner = nested(rest, value);
  const kind = typeof rest[0] === "number" ? 6 : 5;
  const held = rest.length === 0 ? inner : [message(kind, inner)];
  if (typeof segment === "number") return [message(1, held)];
  return [message(1, [text(1, segment), message(2, held)])];
}

describe("function/composite", () => {
  it("finds what a decoder finds, however the request is written", () => {
    let hits = 0;
    fc.assert(
      fc.property(
        anyRequest,
        fc.array(anyPath, { maxLength: 10 }),
        (request, randomPaths) => {
          const resource = decodePlain(request.typed).observed?.composite
            ?.resource;
          const json = resource === undefined ? undefined : jsonOf(resource);
          const want = compositeFromJson(json);

          const got = readComposite(scanRequest(request.wire));

          expect(got.namespace).toBe(want.namespace);
          expect(got.kind).toBe(want.kind);
          for (const path of [...randomPaths, ...pathsInto(json ?? {})]) {
            const lookup = want.field(path);
            // As text: an own __proto__ counts in it.
            expect(JSON.stringify(got.field(path))).toBe(
              JSON.stringify(lookup),
            );
            if (lookup.kind === "found" && path.length > 1) hits += 1;
          }
        },
      ),
      { numRuns: 1000 },
    );
    expect(hits).toBeGreaterThan(1000);
  });

  it("finds what the generated encoder wrote", () => {
    const request = scanRequest(
      requestBytes({
        observed: {
          composite: {
            resource: {
              kind: "XApp",
              metadata: { namespace: "team-a" },
              status: { modules: [{ ref: "a" }, { ref: "b" }], none: null },
            },
          },
        },
      }),
    );

    const composite = readComposite(request);

    expect(composite.kind).toBe("XApp");
    expect(composite.namespace).toBe("team-a");
    expect(composite.field(["status", "modules", 1, "ref"])).toEqual({
      kind: "found",
      value: "b",
    });
    expect(composite.field(["status", "none"])).toEqual({
      kind: "found",
      value: null,
    });
    expect(composite.field(["status", "modules", 2])).toEqual({
      kind: "missing",
      at: 2,
    });
  });

  it.each([
    { name: "no observed state", request: scanRequest(requestBytes()) },
    {
      name: "no composite resource",
      request: scanRequest(requestBytes({ observed: {} })),
    },
    {
      name: "an empty composite resource",
      request: scanRequest(requestBytes({ observed: { composite: {} } })),
    },
  ])("finds nothing in a request with $name", ({ request }) => {
    const composite = readComposite(request);

    expect(composite.kind).toBe("");
    expect(composite.namespace).toBe("");
    expect(composite.field(["status", "module"])).toEqual({
      kind: "missing",
      at: 0,
    });
  });

  it.each(["__proto__", "constructor", "toString"])(
    "finds %s only where the resource has it",
    (name) => {
      const without = readComposite(requestOf(entry("spec", message(5, []))));
      const own = readComposite(requestOf(entry(name, text(3, "own"))));

      expect(without.field([name])).toEqual({ kind: "missing", at: 0 });
      expect(without.field(["spec", name])).toEqual({ kind: "missing", at: 1 });
      expect(own.field([name])).toEqual({ kind: "found", value: "own" });
    },
  );

  it("reads a kind and a namespace that are no text as none", () => {
    const composite = readComposite(
      requestOf(entry("kind", double(2, 1)), entry("metadata", text(3, "m"))),
    );

    expect(composite.kind).toBe("");
    expect(composite.namespace).toBe("");
  });

  it("reads nothing until it is asked", () => {
    const request = scanRequest(bytesField(2, Uint8Array.of(0xff)));

    const composite = readComposite(request);

    for (const read of [
      () => composite.kind,
      () => composite.namespace,
      () => composite.field(["spec"]),
    ])
      expect(read).toThrow("not a protobuf message");
  });

  it("steps over what is not on the path, however deep, large or broken", () => {
    const composite = readComposite(
      requestOf(
        entry("deep", { ...text(5, ""), wire: bytesField(5, deepStruct(1e5)) }),
        entry("large", text(3, "x".repeat(1_000_000))),
        entry("NaN", double(2, NaN)),
        bytesField(
          1,
          concat(text(1, "broken").wire, bytesField(2, Uint8Array.of(0xff))),
        ),
        entry("kind", text(3, "XApp")),
      ),
    );

    expect(composite.kind).toBe("XApp");
    expect(composite.field(["spec"])).toEqual({ kind: "missing", at: 0 });
  });

  it("follows a path to any depth, and a value to 32 levels", () => {
    const composite = readComposite(requestOf(deepStruct(100)));
    const path = (length: number) => new Array<string>(length).fill("a");

    expect(composite.field(path(100))).toMatchObject({ kind: "found" });
    expect(composite.field(path(101))).toEqual({ kind: "missing", at: 100 });
    expect(composite.field(path(68))).toMatchObject({ kind: "found" });
    expect(() => composite.field(path(67))).toThrow(
      `cannot read ${path(67).join(".")} from the composite resource: it nests deeper than 32 levels`,
    );
  });

  it.each([
    {
      name: "a value of NaN",
      path: ["status", "module"],
      value: [double(2, NaN)],
      want: "cannot read status.module from the composite resource: it holds NaN, which is no JSON",
    },
    {
      name: "a value that does not fit",
      path: ["status", "module"],
      value: [text(3, "x".repeat(maxFieldBytes))],
      want: "cannot read status.module from the composite resource: it has 65540 bytes, more than the 65536 bytes such a field may have",
    },
    {
      name: "a value whose pieces do not fit together",
      path: ["status"],
      value: [text(3, "x".repeat(40_000)), text(3, "y".repeat(40_000))],
      want: "cannot read status from the composite resource: it has 80008 bytes",
    },
    {
      name: "a value at keys that are no names",
      path: ["spec", "a.b", 'c"\n', "d", 0],
      value: [double(2, Infinity)],
      want: String.raw`cannot read spec["a.b"]["c\"\u000a"].d[0] from the composite resource: it holds Infinity`,
    },
    {
      name: "a value that is no message",
      path: ["spec"],
      value: [{ ...text(1, ""), wire: Uint8Array.of(0xff) }],
      want: "not a protobuf message: a varint is cut off",
    },
  ])("refuses $name", ({ path, value, want }) => {
    const composite = readComposite(requestOf(join(nested(path, value)).wire));

    expect(() => composite.field(path)).toThrow(want);
  });

  it("takes a value that just fits", () => {
    const value = "x".repeat(maxFieldBytes - 4);
    const composite = readComposite(requestOf(entry("a", text(3, value))));

    expect(composite.field(["a"])).toEqual({ kind: "found", value });
  });

  it("refuses the whole resource when it does not fit", () => {
    const large = entry("a", text(3, "x".repeat(maxFieldBytes)));

    expect(() => readComposite(requestOf(large)).field([])).toThrow(
      "cannot read the composite resource: it has",
    );
  });

  it("takes a value that has as many values in it as the Input may have", () => {
    const items = (count: number) =>
      requestOf(
        entry("a", message(6, new Array<Part>(count).fill(message(1, [])))),
      );

    expect(readComposite(items(4_095)).field(["a"]).kind).toBe("found");
    expect(() => readComposite(items(4_096)).field(["a"])).toThrow(
      /^cannot read a from the composite resource: it has more than 4096 values$/,
    );
  });

  it.each([
    {
      name: "observed.composite",
      state: Buffer.alloc(2 * 65, bytesField(1, Buffer.of())),
    },
    {
      name: "observed.composite.resource",
      state: bytesField(1, Buffer.alloc(2 * 65, bytesField(1, Buffer.of()))),
    },
    {
      name: "struct_value",
      state: message(1, [
        message(1, [
          message(1, [
            text(1, "metadata"),
            message(2, new Array<Part>(65).fill(message(5, []))),
          ]),
        ]),
      ]).wire,
    },
  ])("refuses a resource of too many pieces ($name)", ({ name, state }) => {
    const composite = readComposite(scanRequest(bytesField(2, state)));

    expect(() => composite.namespace).toThrow(
      `the field ${name} occurs more than 64 times in one message`,
    );
  });
});
