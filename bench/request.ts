import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";

/** A JSON value as `google.protobuf.Struct` can hold it. */
export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [key: string]: Json };

/** What a RunFunctionRequest is built from; `observed` and `desired` are State bytes. */
export interface RequestParts {
  readonly modulePath: string;
  /** Go duration, as the Input's `limits.timeout`. */
  readonly timeout: string;
  /** More fields of the Input's `module`; they go before `modulePath`. */
  readonly module?: Readonly<Record<string, Json>>;
  readonly compositionPolicy?: string;
  readonly config?: Json;
  /** Step credentials: the texts of each by their keys. */
  readonly credentials?: Readonly<Record<string, Record<string, string>>>;
  readonly observed?: Uint8Array;
  readonly desired?: Uint8Array;
}

/**
 * RunFunctionRequest bytes with an Input that names a Path module. Encoded here and not with the
 * server's own code, so that what is sent does not depend on what is measured.
 */
export function runFunctionRequest(parts: RequestParts): Uint8Array {
  const input: Json = {
    apiVersion: "wasm.fn.crossplane.io/v1",
    kind: "Input",
    module: {
      type: "Path",
      ...(parts.module ?? { path: parts.modulePath }),
    },
    limits: { timeout: parts.timeout },
    ...(parts.compositionPolicy === undefined
      ? {}
      : { compositionPolicy: parts.compositionPolicy }),
    ...(parts.config === undefined ? {} : { config: parts.config }),
  };
  return concat([
    delimited(1, delimited(1, text("c0ffee"))),
    delimited(2, parts.observed ?? smallState()),
    delimited(3, parts.desired ?? smallState()),
    delimited(4, struct(input)),
    ...Object.entries(parts.credentials ?? {}).map(credential),
  ]);
}

/** A State that holds nothing but a small composite resource. */
export function smallState(
  spec: Readonly<Record<string, Json>> = {},
): Uint8Array {
  const { spec: own, ...rest } = composite;
  return delimited(1, resource({ ...rest, spec: { ...own, ...spec } }));
}

/**
 * A State of at least `minBytes` (less than 2 KiB more): a composite and many composed resources,
 * each a tree of small fields, as clusters have them.
 */
export function treeState(minBytes: number): Uint8Array {
  const parts = [smallState()];
  let sizeBytes = 0;
  for (let index = 0; sizeBytes < minBytes; index++) {
    const name = `resource-${index.toString().padStart(6, "0")}`;
    const entry = delimited(
      2,
      concat([
        delimited(1, text(name)),
        delimited(2, resource(composed(name))),
      ]),
    );
    parts.push(entry);
    sizeBytes += entry.length;
  }
  return concat(parts);
}

const composite = {
  apiVersion: "example.org/v1",
  kind: "XGreeting",
  metadata: { name: "greeting", namespace: "team-a" },
  spec: { region: "eu-central-1" },
};

function credential([name, data]: [
  string,
  Readonly<Record<string, string>>,
]): Uint8Array {
  const entries = Object.entries(data).map(([key, content]) =>
    delimited(
      1,
      concat([delimited(1, text(key)), delimited(2, text(content))]),
    ),
  );
  const credentials = delimited(1, concat(entries));
  return delimited(
    7,
    concat([delimited(1, text(name)), delimited(2, credentials)]),
  );
}

function composed(name: string): Json {
  return {
    apiVersion: "example.org/v1",
    kind: "Thing",
    metadata: {
      name,
      labels: leaves("label", 6),
      annotations: leaves("annotation", 6),
    },
    spec: {
      forProvider: {
        ...leaves("field", 8),
        nested: { deeper: leaves("leaf", 6) },
      },
    },
    status: { atProvider: leaves("status", 8) },
  };
}

/** `count` fields with values of twenty bytes. */
function leaves(prefix: string, count: number): Record<string, Json> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => {
      const key = `${prefix}-${index}`;
      return [key, `value-of-${key}`.padEnd(20, "x").slice(0, 20)];
    }),
  );
}

function resource(json: Json): Uint8Array {
  return delimited(1, struct(json));
}

function struct(json: Json): Uint8Array {
  const entries = Object.entries(json as Record<string, Json>);
  return concat(
    entries.map(([key, member]) =>
      delimited(
        1,
        concat([delimited(1, text(key)), delimited(2, value(member))]),
      ),
    ),
  );
}

function value(json: Json): Uint8Array {
  if (json === null)
    return new BinaryWriter().tag(1, WireType.Varint).int32(0).finish();
  if (typeof json === "number")
    return new BinaryWriter().tag(2, WireType.Bit64).double(json).finish();
  if (typeof json === "string") return delimited(3, text(json));
  if (typeof json === "boolean")
    return new BinaryWriter().tag(4, WireType.Varint).bool(json).finish();
  if (Array.isArray(json))
    return delimited(
      6,
      concat(json.map((item: Json) => delimited(1, value(item)))),
    );
  return delimited(5, struct(json));
}

function delimited(field: number, payload: Uint8Array): Uint8Array {
  return new BinaryWriter()
    .tag(field, WireType.LengthDelimited)
    .bytes(payload)
    .finish();
}

function text(value: string): Uint8Array {
  return Buffer.from(value, "utf8");
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}
