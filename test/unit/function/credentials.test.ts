import { fromBinary } from "@bufbuild/protobuf";
import fc, { type Arbitrary } from "fast-check";
import { describe, expect, it, vi } from "vitest";

import {
  maxDataKeys,
  maxEntryNames,
  readCredentials,
  withholdCredentials,
} from "../../../src/function/credentials.js";
import { FunctionError } from "../../../src/function/error.js";
import { scanRequest } from "../../../src/function/request.js";
import { bytesField } from "../../../src/function/wire.js";
import { RunFunctionRequestSchema } from "../../../src/gen/run_function_pb.js";
import { concat, deepStruct, requestBytes } from "./fixtures.js";
import { decodePlain, mapOf, samePlain } from "./plain-decoder.js";
import {
  group,
  join,
  message,
  mistyped,
  part,
  shuffled,
  some,
  text,
  unknownField,
  varint,
  type Part,
} from "./wire-parts.js";

const names = ["db", "cmdb", "registry", "ü", "__proto__", "constructor", ""];
const anyName = fc.constantFrom(...names);
const granting = (...granted: string[]) => new Set(granted);

/** Stands for a secret until it is known which entry it is in; all are equally long. */
const placeholder = "hunter2-000";

/** A field with the number of `credentials`. */
interface CredentialField {
  readonly part: Part;
  /** Every name in the entry; null when it is none that a module may see. */
  readonly names: readonly string[] | null;
}

const strayInData = some(unknownField, 1);
const anyDataEntry = shuffled(
  some(
    anyName.map((name) => text(1, name)),
    2,
  ),
  some(fc.constantFrom(text(2, placeholder), text(2, ""))),
  strayInData,
).map((parts) => message(1, parts));
const anyCredentialData = shuffled(some(anyDataEntry), strayInData).map(
  (parts) => message(1, parts),
);
const anyValue = shuffled(some(anyCredentialData, 2), strayInData).map(
  (parts) => message(2, parts),
);

/** An entry with `stray` fields among its names and values, its tag in one byte or two. */
function anyEntry(stray: Arbitrary<Part>): Arbitrary<CredentialField> {
  return fc
    .tuple(
      fc.oneof(
        { weight: 4, arbitrary: anyName.map((name) => [name]) },
        { weight: 1, arbitrary: fc.array(anyName, { maxLength: 3 }) },
      ),
      some(anyValue),
      some(stray, 1),
      fc.boolean(),
    )
    .chain(([keys, values, strays, longTag]) => {
      const parts = [...keys.map((key) => text(1, key)), ...values, ...strays];
      return fc
        .shuffledSubarray(parts, { minLength: parts.length })
        .map((fields) => {
          const entry = message(7, fields);
          return {
            part: longTag
              ? { wire: longer(entry.wire), typed: longer(entry.typed) }
              : entry,
            names: keys.length === 0 ? [""] : keys,
          };
        });
    });
}

/** The same field with a tag of one byte more than it needs. */
function longer(field: Uint8Array): Uint8Array {
  return concat(Uint8Array.of(0xba, 0x00), field.subarray(1));
}

/** What no decoder may take for a credential, and a careless one might. */
const anyFalseField: Arbitrary<CredentialField> = fc
  .oneof(
    mistyped(7),
    fc.constantFrom(
      group(7, text(2, placeholder).wire),
      group(7, concat(group(7, text(1, placeholder).wire).wire)),
    ),
    // A name that is none.
    mistyped(1).map(({ wire }) =>
      part(bytesField(7, concat(text(1, "db").wire, wire, secretOf("db")))),
    ),
  )
  .map(({ wire }) => ({
    part: { wire, typed: new Uint8Array() },
    names: null,
  }));

const anyOtherField: Arbitrary<Part> = fc.oneof(
  unknownField,
  fc.constantFrom(
    part(requestBytes({ meta: { tag: "t" } })),
    part(requestBytes({ desired: { resources: { a: { ready: 1 } } } })),
    part(requestBytes({ input: { credentials: { db: "x" } } })),
    part(requestBytes({ requiredResources: { registry: { items: [] } } })),
    message(2, [message(1, [text(1, "")]), unknownPart()]),
    // An unknown group, and a credential inside another one.
    part(Uint8Array.of(0xc3, 0x3e, 0x08, 0x01, 0xc4, 0x3e)),
    group(1000, message(7, [text(1, "x")]).wire),
  ),
);

interface AnyRequest {
  readonly fields: readonly {
    readonly part: Part;
    /** Undefined when it is no credential. */
    readonly names: CredentialField["names"] | undefined;
    readonly secret: string;
  }[];
  readonly bytes: Uint8Array;
}

/** Requests whose every credential has a secret of its own. */
function anyRequest(field: Arbitrary<CredentialField>): Arbitrary<AnyRequest> {
  const other = anyOtherField.map((other) => ({
    part: other,
    names: undefined,
  }));
  return fc
    .array(fc.oneof(field, other), { maxLength: 12 })
    .map((generated) => {
      const fields = generated.map(({ part, names }, index) => {
        const secret = `hunter2-${String(index + 1).padStart(3, "0")}`;
        return { part: planted(part, secret), names, secret };
      });
      return { fields, bytes: join(fields.map((each) => each.part)).wire };
    });
}

function planted({ wire, typed }: Part, secret: string): Part {
  const plant = (bytes: Uint8Array) => {
    const latin1 = Buffer.from(bytes).toString("latin1");
    return new Uint8Array(
      Buffer.from(latin1.replaceAll(placeholder, secret), "latin1"),
    );
  };
  return { wire: plant(wire), typed: plant(typed) };
}

function unknownPart(): Part {
  return group(1023, varint(7, 1).wire);
}

function secretOf(name: string, key = "password"): Uint8Array {
  const data = message(1, [text(1, key), text(2, `${placeholder}-${name}`)]);
  return message(2, [message(1, [data])]).wire;
}

/** An entry of `credentials`. */
function credential(...fields: readonly (Part | Uint8Array)[]): Uint8Array {
  return bytesField(
    7,
    concat(...fields.map((each) => ("wire" in each ? each.wire : each))),
  );
}

function includes(bytes: Uint8Array, what: string): boolean {
  return Buffer.from(bytes).includes(what);
}

describe("function/credentials", () => {
  describe("withholdCredentials", () => {
    it("leaves no byte of what is not granted, and every other byte where it was", () => {
      const field = fc.oneof(
        { weight: 5, arbitrary: anyEntry(unknownField) },
        { weight: 1, arbitrary: anyFalseField },
      );
      fc.assert(
        fc.property(
          anyRequest(field),
          fc.subarray(names),
          ({ fields, bytes }, granted) => {
            const isKept = ({ names }: (typeof fields)[number]) =>
              names === undefined ||
              (names?.every((name) => granted.includes(name)) ?? false);

            const forwarded = withholdCredentials(
              scanRequest(bytes),
              new Set(granted),
            );

            const kept = fields.filter(isKept);
            expect(Buffer.from(forwarded).toString("hex")).toBe(
              Buffer.from(join(kept.map((each) => each.part)).wire).toString(
                "hex",
              ),
            );
            for (const each of fields) {
              if (!isKept(each))
                expect(includes(forwarded, each.secret)).toBe(false);
            }
          },
        ),
        { numRuns: 500 },
      );
    });

    it("hands a decoder the same request with the granted credentials only", () => {
      fc.assert(
        fc.property(
          anyRequest(anyEntry(unknownField)),
          fc.subarray(names),
          ({ fields, bytes }, granted) => {
            const forwarded = decodePlain(
              withholdCredentials(scanRequest(bytes), new Set(granted)),
            );

            const original = decodePlain(bytes);
            const carried = mapOf(forwarded.credentials);
            expect(granted).toEqual(
              expect.arrayContaining([...carried.keys()]),
            );
            const clear = fields.every(
              (each) => new Set(each.names ?? []).size <= 1,
            );
            for (const name of clear ? granted : []) {
              expect(carried.get(name)).toEqual(
                mapOf(original.credentials).get(name),
              );
            }
            original.credentials = [];
            forwarded.credentials = [];
            expect(samePlain(original, forwarded)).toBe(true);
          },
        ),
        { numRuns: 500 },
      );
    });

    it("lets nothing through that is cut off", () => {
      fc.assert(
        fc.property(
          anyRequest(fc.oneof(anyEntry(unknownField), anyFalseField)),
          fc.subarray(names),
          fc.nat(),
          ({ fields, bytes }, granted, at) => {
            const cut = bytes.subarray(0, at % (bytes.length + 1));
            let forwarded: Uint8Array;
            try {
              forwarded = withholdCredentials(
                scanRequest(cut),
                new Set(granted),
              );
            } catch (thrown) {
              expect(thrown).toBeInstanceOf(FunctionError);
              expect(thrown).toMatchObject({ code: "wire-malformed" });
              return;
            }
            for (const { names, secret } of fields) {
              if (names === undefined) continue;
              if (names?.every((name) => granted.includes(name))) continue;
              expect(includes(forwarded, secret)).toBe(false);
            }
          },
        ),
        { numRuns: 500 },
      );
    });

    it.each([
      { name: "no credential", bytes: requestBytes(), granted: granting() },
      {
        name: "granted credentials only",
        bytes: concat(
          credential(text(1, "db"), secretOf("db")),
          requestBytes(),
          credential(secretOf("db"), text(1, "db")),
        ),
        granted: granting("db"),
      },
    ])("does not copy a request with $name", ({ bytes, granted }) => {
      expect(withholdCredentials(scanRequest(bytes), granted)).toBe(bytes);
    });

    it.each([
      { name: "one name", fields: [text(1, "db")], kept: true },
      { name: "another name", fields: [text(1, "registry")], kept: false },
      { name: "no name", fields: [], kept: false },
      { name: "an empty name", fields: [text(1, "")], kept: false },
      {
        name: "two granted names",
        fields: [text(1, "db"), text(1, "cmdb")],
        kept: true,
      },
      {
        name: "a granted name after another",
        fields: [text(1, "registry"), text(1, "db")],
        kept: false,
      },
      {
        name: "a granted name before another",
        fields: [text(1, "db"), text(1, "registry")],
        kept: false,
      },
      {
        name: "the name of an inherited property",
        fields: [text(1, "__proto__")],
        kept: false,
      },
      {
        name: "a name that is a number",
        fields: [text(1, "db"), varint(1, 2)],
        kept: false,
      },
      {
        name: "a name that is a group",
        fields: [group(1, text(1, "db").wire), text(1, "db")],
        kept: false,
      },
      {
        name: "a value that is a number",
        fields: [text(1, "db"), varint(2, 2)],
        kept: true,
      },
      {
        name: "a granted name, and another in an unknown group",
        fields: [group(1023, text(1, "registry").wire), text(1, "db")],
        kept: true,
      },
    ])("keeps an entry with $name: $kept", ({ fields, kept }) => {
      for (const bytes of [
        credential(...fields, secretOf("x")),
        credential(secretOf("x"), ...fields),
      ]) {
        const forwarded = withholdCredentials(
          scanRequest(concat(bytes, requestBytes())),
          granting("db", "cmdb"),
        );

        expect(includes(forwarded, "hunter2")).toBe(kept);
      }
    });

    it("takes an entry without a name for the credential of no name", () => {
      const bytes = credential(secretOf("x"));

      expect(withholdCredentials(scanRequest(bytes), granting(""))).toBe(bytes);
    });

    it.each([
      {
        name: "a name that is not UTF-8",
        entry: Uint8Array.of(10, 1, 0xff),
        want: "a string is not UTF-8",
      },
      {
        name: "an end in the middle of a field",
        entry: concat(text(1, "db").wire, Uint8Array.of(0x12, 5, 1)),
        want: "a field is cut off",
      },
      {
        name: "a group that does not end",
        entry: concat(text(1, "db").wire, Uint8Array.of(0xc3, 0x3e)),
        want: "a varint is cut off",
      },
    ])(
      "refuses an entry with $name, and never forwards it",
      ({ entry, want }) => {
        const request = scanRequest(bytesField(7, entry));

        expect(() => withholdCredentials(request, granting("db"))).toThrow(
          `not a protobuf message: ${want}`,
        );
        // Nothing of it can be granted, so nothing has to be understood.
        expect(withholdCredentials(request, granting())).toHaveLength(0);
      },
    );

    it("withholds behind an unknown group, which other fields may hide in", () => {
      const unknown = Uint8Array.of(0xc3, 0x3e, 0x08, 0x01, 0xc4, 0x3e);
      const bytes = concat(
        unknown,
        credential(text(1, "registry"), secretOf("registry")),
        unknown,
        requestBytes(),
      );

      const forwarded = withholdCredentials(scanRequest(bytes), granting("db"));

      expect(new Uint8Array(forwarded)).toEqual(
        concat(unknown, unknown, requestBytes()),
      );
    });

    it("leaves the generated decoder no credential to find", () => {
      const bytes = concat(
        requestBytes(),
        credential(text(1, "db"), secretOf("db")),
      );

      const forwarded = withholdCredentials(scanRequest(bytes), granting());

      const decoded = fromBinary(RunFunctionRequestSchema, forwarded);
      expect(decoded.credentials).toEqual({});
      expect(decoded.meta?.tag).toBe("a-tag");
    });

    it.each([
      {
        name: "that is not granted",
        names: ["registry", "db"],
        decodes: 1,
        kept: false,
      },
      {
        name: "that is granted",
        names: new Array<string>(maxEntryNames).fill("db"),
        decodes: maxEntryNames,
        kept: true,
      },
    ])("decodes no name behind one $name", ({ names, decodes, kept }) => {
      const parts = names.map((name) => text(1, name));
      const more = kept ? [] : new Array<Part>(1000).fill(text(1, "db"));
      const request = scanRequest(credential(...parts, ...more));
      const decode = vi.spyOn(TextDecoder.prototype, "decode");
      try {
        const forwarded = withholdCredentials(request, granting("db"));

        expect(forwarded.length > 0).toBe(kept);
        expect(decode).toHaveBeenCalledTimes(decodes);
      } finally {
        decode.mockRestore();
      }
    });

    it("refuses an entry of more granted names than anybody writes", () => {
      const parts = new Array<Part>(maxEntryNames + 1).fill(text(1, "db"));
      const request = scanRequest(credential(...parts));

      expect(() => withholdCredentials(request, granting("db"))).toThrow(
        "the field key occurs more than 8 times in one message",
      );
      expect(withholdCredentials(request, granting())).toHaveLength(0);
    });

    it("removes neighbours as one, so that a thousand are not a thousand slices", () => {
      const bytes = concat(
        requestBytes(),
        ...new Array<Uint8Array>(1000).fill(credential(text(1, "db"))),
        requestBytes({ desired: {} }),
        credential(text(1, "db")),
      );
      const want = concat(requestBytes(), requestBytes({ desired: {} }));
      const join = vi.spyOn(Buffer, "concat");
      try {
        const forwarded = withholdCredentials(scanRequest(bytes), granting());

        expect([...forwarded]).toEqual([...want]);
        expect(join.mock.calls.map(([slices]) => slices.length)).toEqual([3]);
      } finally {
        join.mockRestore();
      }
    });

    it("does not look at state, however deep", () => {
      const deep = bytesField(2, bytesField(1, bytesField(1, deepStruct(1e5))));
      const bytes = concat(requestBytes(), deep);

      expect(withholdCredentials(scanRequest(bytes), granting("db"))).toBe(
        bytes,
      );
    });
  });

  describe("readCredentials", () => {
    it("reads what a decoder reads, however the request is written", () => {
      const stray = fc.oneof(unknownField, mistyped(1), mistyped(2));
      let found = 0;
      fc.assert(
        fc.property(
          anyRequest(anyEntry(stray)),
          fc.subarray(names),
          ({ fields, bytes }, asked) => {
            const typed = join(fields.map((each) => each.part)).typed;
            const want = mapOf(decodePlain(typed).credentials);

            const got = readCredentials(scanRequest(bytes), asked);

            const present = asked.filter((name) => want.has(name));
            expect([...got.keys()].sort()).toEqual(present.sort());
            for (const [name, data] of got) {
              const entries = want.get(name)?.source.value?.data ?? [];
              const decoded = mapOf(entries);
              expect(shown(data)).toEqual(shown(decoded));
              found += data.size;
            }
          },
        ),
        { numRuns: 500 },
      );
      expect(found).toBeGreaterThan(100);
    });

    it("tells a credential without data from none", () => {
      const request = scanRequest(credential(text(1, "db")));

      const got = readCredentials(request, ["db", "cmdb"]);

      expect([...got]).toEqual([["db", new Map()]]);
    });

    it("merges the pieces of a value, the last of two equal keys winning", () => {
      const piece = (key: string, value: string) =>
        message(2, [message(1, [message(1, [text(1, key), text(2, value)])])]);
      const request = scanRequest(
        credential(
          piece("user", "a"),
          piece("password", "b"),
          text(1, "db"),
          piece("user", "c"),
        ),
      );

      const got = readCredentials(request, ["db"]);

      expect(shown(got.get("db") ?? new Map())).toEqual([
        ["password", "b"],
        ["user", "c"],
      ]);
    });

    it("does not merge two entries of one name", () => {
      const request = scanRequest(
        concat(
          credential(text(1, "db"), secretOf("db", "old")),
          credential(text(1, "db"), secretOf("db", "new")),
        ),
      );

      expect([
        ...(readCredentials(request, ["db"]).get("db")?.keys() ?? []),
      ]).toEqual(["new"]);
    });

    it("asks nothing of a request it is asked nothing about", () => {
      const request = scanRequest(bytesField(7, Uint8Array.of(0xff)));

      expect(readCredentials(request, []).size).toBe(0);
      expect(() => readCredentials(request, ["db"])).toThrow(
        "not a protobuf message",
      );
    });

    it.each([
      { name: "a varint", bytes: varint(7, 1).wire },
      { name: "a group", bytes: group(7, text(1, "db").wire).wire },
    ])("finds no credential in $name of that number", ({ bytes }) => {
      expect(readCredentials(scanRequest(bytes), ["db"]).size).toBe(0);
    });

    it("reads as many keys as it says, of all credentials together", () => {
      const keys = (count: number) =>
        bytesField(
          2,
          bytesField(1, Buffer.alloc(2 * count, bytesField(1, Buffer.of()))),
        );
      const request = scanRequest(
        concat(
          credential(text(1, "db"), keys(maxDataKeys - 1)),
          credential(text(1, "cmdb"), keys(1)),
          credential(text(1, "api"), keys(2)),
        ),
      );

      expect(readCredentials(request, ["db", "cmdb"]).size).toBe(2);
      expect(() => readCredentials(request, ["db", "api"])).toThrow(
        "the step's credentials have more than 16384 keys",
      );
    });

    it.each([
      { name: "value", piece: bytesField(2, Buffer.of()) },
      {
        name: "credential_data",
        piece: bytesField(2, Buffer.alloc(2 * 65, bytesField(1, Buffer.of()))),
      },
    ])("refuses a credential of too many pieces ($name)", ({ name, piece }) => {
      const count = name === "value" ? 65 : 1;
      const pieces = new Array<Uint8Array>(count).fill(piece);
      const request = scanRequest(credential(text(1, "db"), ...pieces));

      expect(() => readCredentials(request, ["db"])).toThrow(
        `the field ${name} occurs more than 64 times in one message`,
      );
    });

    it("refuses a credential that is no message", () => {
      const broken = bytesField(2, Uint8Array.of(0xff));
      const request = scanRequest(credential(text(1, "db"), broken));

      expect(() => readCredentials(request, ["db"])).toThrow(
        "not a protobuf message",
      );
    });
  });
});

function shown(data: ReadonlyMap<string, Uint8Array | null>): string[][] {
  return [...data]
    .map(([key, value]) => [key, Buffer.from(value ?? []).toString("latin1")])
    .sort(([a = ""], [b = ""]) => (a < b ? -1 : 1));
}
