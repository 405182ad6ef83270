import { addPiece } from "./pieces.js";
import { WireReader, wireType, type WireRange } from "./wire.js";

/** What a `google.protobuf.Value` holds; one without a kind is null. */
export type ValueContent =
  /** The one that counts. */
  | { readonly kind: ScalarKind; readonly scalar: WireRange }
  /** All pieces, which merge. */
  | { readonly kind: ContainerKind; readonly pieces: readonly WireRange[] };

/**
 * Finds what the Value whose bytes are `value`, one after the other, holds: the last kind wins; an
 * object or list that follows one of its own kind adds to it. What another replaces is not looked
 * at, for there may be millions.
 * @throws FunctionError wire-malformed, also when there are more pieces than are kept
 */
export function contentOf(
  bytes: Uint8Array,
  value: readonly WireRange[],
): ValueContent {
  let kind: ScalarKind | ContainerKind = "null";
  let start = 0;
  let end = 0;
  // Replaced ones count too, or two kinds in turn would go on without end.
  const pieces: WireRange[] = [];
  let firstPiece = 0;
  for (const range of value) {
    const reader = new WireReader(bytes, range);
    while (reader.next()) {
      const next = kindOf(reader);
      if (next === undefined) continue;
      if (isContainer(next)) {
        if (next !== kind) firstPiece = pieces.length;
        addPiece(pieces, reader.value(), containerName[next]);
      }
      start = reader.valueStart;
      end = reader.valueEnd;
      kind = next;
    }
  }
  if (isContainer(kind)) return { kind, pieces: pieces.slice(firstPiece) };
  return { kind, scalar: { start, end } };
}

type ScalarKind = "null" | "number" | "string" | "bool";
type ContainerKind = "struct" | "list";

const containerName = { struct: "struct_value", list: "list_value" } as const;

function isContainer(kind: ScalarKind | ContainerKind): kind is ContainerKind {
  return kind === "struct" || kind === "list";
}

/** Numbers of the google.protobuf.Value fields. */
const valueField = {
  null: 1,
  number: 2,
  string: 3,
  bool: 4,
  struct: 5,
  list: 6,
} as const;

/** Undefined for a field that is none of a Value's. */
function kindOf(reader: WireReader): ScalarKind | ContainerKind | undefined {
  switch (reader.fieldNumber * 8 + reader.wireType) {
    case valueField.null * 8 + wireType.varint:
      return "null";
    case valueField.number * 8 + wireType.fixed64:
      return "number";
    case valueField.string * 8 + wireType.bytes:
      return "string";
    case valueField.bool * 8 + wireType.varint:
      return "bool";
    case valueField.struct * 8 + wireType.bytes:
      return "struct";
    case valueField.list * 8 + wireType.bytes:
      return "list";
    default:
      return undefined;
  }
}
