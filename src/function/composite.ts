import {
  formatFieldPath,
  textOf,
  type CompositeResource,
  type FieldLookup,
  type JsonValue,
  type PathSegment,
} from "../admission/index.js";
import { piecesOf } from "./pieces.js";
import type { ScannedRequest } from "./request.js";
import { decodeStruct, decodeValue, unreadable } from "./struct.js";
import { findValue } from "./struct-path.js";
import type { WireRange } from "./wire.js";

/** Bytes on the wire that a field of the composite resource may have to be read: no source is long. */
export const maxFieldBytes = 64 * 1024;

/**
 * The observed composite resource, of which nothing is read until something is asked; and then only
 * what lies on the way, for it may have megabytes.
 *
 * Every getter and `field` throw FunctionError wire-malformed, or input-unreadable for a value that
 * is too large, too deep or no JSON.
 */
export function readComposite(request: ScannedRequest): CompositeResource {
  const { bytes } = request;
  const resource = once(() => resourcePieces(request));
  const field = (path: readonly PathSegment[]) =>
    lookUp(bytes, resource(), path);
  const namespace = once(() => textOf(field(["metadata", "namespace"])));
  const kind = once(() => textOf(field(["kind"])));
  return {
    get namespace() {
      return namespace();
    },
    get kind() {
      return kind();
    },
    field,
  };
}

const stateCompositeNumber = 1;
const resourceResourceNumber = 1;

/** As deep as the Input, whose place a field that is read here takes. */
const maxFieldDepth = 32;

/** The same for how many values it has. */
const maxFieldValues = 4_096;

/** The pieces of `observed.composite.resource`, a Struct; messages on the way there merge. */
function resourcePieces({ bytes, observed }: ScannedRequest): WireRange[] {
  const composite = piecesOf(
    bytes,
    observed,
    stateCompositeNumber,
    "observed.composite",
  );
  return piecesOf(
    bytes,
    composite,
    resourceResourceNumber,
    "observed.composite.resource",
  );
}

function lookUp(
  bytes: Uint8Array,
  resource: readonly WireRange[],
  path: readonly PathSegment[],
): FieldLookup {
  const rules = {
    subject: subjectOf(path),
    maxDepth: maxFieldDepth,
    maxValues: maxFieldValues,
  };
  if (path.length === 0) {
    refuseLarge(resource, rules.subject);
    return { kind: "found", value: decodeStruct(bytes, resource, rules) };
  }
  const lookup = findValue(bytes, resource, path);
  if (lookup.kind === "missing") return lookup;
  refuseLarge(lookup.pieces, rules.subject);
  const value: JsonValue = decodeValue(bytes, lookup.pieces, rules);
  return { kind: "found", value };
}

function refuseLarge(pieces: readonly WireRange[], subject: string): void {
  const size = pieces.reduce((sum, { start, end }) => sum + end - start, 0);
  if (size <= maxFieldBytes) return;
  throw unreadable(
    subject,
    `it has ${size} bytes, more than the ${maxFieldBytes} bytes such a field may have`,
  );
}

function subjectOf(path: readonly PathSegment[]): string {
  if (path.length === 0) return "the composite resource";
  return `${formatFieldPath(path)} from the composite resource`;
}

function once<T>(compute: () => T): () => T {
  let result: { readonly value: T } | undefined;
  return () => (result ??= { value: compute() }).value;
}
