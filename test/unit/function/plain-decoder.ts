import {
  createFileRegistry,
  equals,
  fromBinary,
  fromJson,
  toJson,
  type JsonObject,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import {
  FileDescriptorProtoSchema,
  FileDescriptorSetSchema,
} from "@bufbuild/protobuf/wkt";

import { file_run_function } from "../../../src/gen/run_function_pb.js";

/** A request as {@link decodePlain} returns it, as far as tests look. */
export interface PlainRequest extends Message {
  readonly observed?: { readonly composite?: { readonly resource?: Struct } };
  readonly input?: Struct;
  credentials: readonly Entry<{ readonly source: CredentialSource }>[];
}

interface CredentialSource {
  readonly value?: { readonly data: readonly Entry<Uint8Array>[] };
}

interface Entry<V> {
  readonly key: string;
  readonly value?: V;
}

interface Struct {
  readonly fields: readonly Entry<Value>[];
}

interface Value {
  readonly kind:
    | { readonly case: "structValue"; readonly value: Struct }
    | {
        readonly case: "listValue";
        readonly value: { readonly values: readonly Value[] };
      }
    | { readonly case: "nullValue" }
    | { readonly case: undefined }
    | {
        readonly case: "numberValue" | "stringValue" | "boolValue";
        readonly value: number | string | boolean;
      };
}

/**
 * Decodes a RunFunctionRequest with the generated code's library, but with every map as the list of
 * entry messages that it is on the wire. As a map, that library neither merges the pieces of an
 * entry's value nor skips what it does not know in an entry, and loses the key `__proto__`.
 */
export function decodePlain(bytes: Uint8Array): PlainRequest {
  // A copy, so that what comes out never is a Buffer, which compares as another type.
  return fromBinary(requestSchema, new Uint8Array(bytes)) as PlainRequest;
}

/** Whether two requests say the same, in fields that are not known, too. */
export function samePlain(a: PlainRequest, b: PlainRequest): boolean {
  return equals(requestSchema, a, b, { registry, unknown: true });
}

/** What a map holds: the last entry of each key. */
export function mapOf<V>(entries: readonly Entry<V>[]): Map<string, V | null> {
  return new Map(entries.map(({ key, value }) => [key, value ?? null]));
}

/** A decoded Struct as JSON, `__proto__` being a key like any other. */
export function jsonOf(struct: Struct): JsonObject {
  const json = Object.create(null) as JsonObject;
  for (const [key, value] of mapOf(struct.fields))
    json[key] = value === null ? null : valueOf(value);
  return json;
}

function valueOf({ kind }: Value): JsonValue {
  switch (kind.case) {
    case "structValue":
      return jsonOf(kind.value);
    case "listValue":
      return kind.value.values.map(valueOf);
    case "nullValue":
    case undefined:
      return null;
    case "numberValue":
    case "stringValue":
    case "boolValue":
      return kind.value;
  }
}

const registry = plainRegistry();
const requestSchema = messageNamed(
  "apiextensions.fn.proto.v1.RunFunctionRequest",
);

function plainRegistry() {
  const files = [...file_run_function.dependencies, file_run_function];
  const set = { file: files.map(({ proto }) => plain(proto)) };
  return createFileRegistry(fromJson(FileDescriptorSetSchema, set));
}

function messageNamed(name: string) {
  const schema = registry.getMessage(name);
  if (schema === undefined) throw new Error(`no message ${name}`);
  return schema;
}

/** Without maps, and under another package: the library treats Google's in a way of its own. */
function plain(proto: (typeof file_run_function)["proto"]): JsonObject {
  const json = JSON.stringify(toJson(FileDescriptorProtoSchema, proto));
  return JSON.parse(
    json
      .replaceAll('"options":{"mapEntry":true}', '"options":{}')
      .replaceAll(/"(\.?)google\.protobuf/g, '"$1plain'),
  ) as JsonObject;
}
