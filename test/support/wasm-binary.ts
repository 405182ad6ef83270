/** A module under construction: what it has beside the exports every ABI v1 module has. */
export interface CoreModuleParts {
  /** Locals and instructions, without the final `end`, of functions of type `() -> ()`. */
  readonly extraFunctions?: Iterable<FunctionBody>;
  readonly dataSegments?: number;
  /** Export names beside the usual ones; each exports the memory. */
  readonly exportNames?: readonly string[];
  /** Bytes of a custom section named "padding". */
  readonly customBytes?: number;
  /** Imports of functions `() -> ()`. */
  readonly imports?: readonly {
    readonly module: string;
    readonly name: string;
  }[];
  /** Leave the exports out: a module of the wrong shape. */
  readonly withoutExports?: boolean;
}

/** One function body. */
export interface FunctionBody {
  /** Locals of type i32. */
  readonly locals: number;
  /** Instructions without the final `end`. */
  readonly code: Uint8Array;
}

/**
 * Assembles a valid ABI v1 module with constant `wasmfn_alloc` and empty response, and whatever
 * `parts` add. For modules that text cannot express at a bearable size.
 */
export function assembleCoreModule(parts: CoreModuleParts = {}): Uint8Array {
  const bodies = [
    body({ locals: 0, code: concat(i32Const(1024)) }),
    body({ locals: 0, code: Uint8Array.of(op.i64Const, 0) }),
    ...Array.from(parts.extraFunctions ?? [], body),
  ];
  const types = [
    Uint8Array.of(0x60, 1, i32, 1, i32),
    Uint8Array.of(0x60, 2, i32, i32, 1, i64),
    Uint8Array.of(0x60, 0, 0),
  ];
  // Function indices begin with the imports.
  const imports = (parts.imports ?? []).map(({ module, name }) =>
    concat([text(module), text(name), Uint8Array.of(0, 2)]),
  );
  const typeOf = (_: unknown, index: number) => leb128(Math.min(index, 2));
  const exports =
    parts.withoutExports === true
      ? []
      : [
          exported("memory", 2, 0),
          exported("wasmfn_alloc", 0, imports.length),
          exported("wasmfn_run", 0, imports.length + 1),
          ...(parts.exportNames ?? []).map((name) => exported(name, 2, 0)),
        ];
  // Active, memory 0, at offset 0, empty.
  const segment = Uint8Array.of(0, ...i32Const(0), op.end, 0);
  const segments = new Array<Uint8Array>(parts.dataSegments ?? 0).fill(segment);
  return concat([
    Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0),
    section(1, vector(types)),
    ...(imports.length === 0 ? [] : [section(2, vector(imports))]),
    section(3, vector(bodies.map(typeOf))),
    section(5, vector([Uint8Array.of(0, 2)])),
    section(7, vector(exports)),
    section(10, vector(bodies)),
    section(11, vector(segments)),
    ...(parts.customBytes === undefined
      ? []
      : [section(0, [text("padding"), new Uint8Array(parts.customBytes)])]),
  ]);
}

/** Wraps components into each other as custom content of `outer`, `depth` levels deep. */
export function nestComponents(outer: Uint8Array, depth: number): Uint8Array {
  let inner: Uint8Array = componentPreamble;
  for (let level = 1; level < depth; level++) {
    inner = concat([componentPreamble, section(4, [inner])]);
  }
  return concat([outer, section(4, [inner])]);
}

/** A component of one type that declares a type that declares a type, and so on: three bytes each. */
export function nestTypes(
  kind: "component" | "instance",
  depth: number,
): Uint8Array {
  const opcode = kind === "component" ? 0x41 : 0x42;
  // One declaration, which is a type.
  const level = Uint8Array.of(opcode, 1, 1);
  const types = Buffer.alloc((depth - 1) * level.length, level);
  const innermost = Uint8Array.of(opcode, 0);
  return concat([
    componentPreamble,
    section(7, [Uint8Array.of(1), types, innermost]),
  ]);
}

/** Opcodes that generators use. */
export const op = {
  block: 0x02,
  loop: 0x03,
  end: 0x0b,
  br_if: 0x0d,
  drop: 0x1a,
  localGet: 0x20,
  localSet: 0x21,
  i32Const: 0x41,
  i64Const: 0x42,
  i32Add: 0x6a,
  i32Mul: 0x6c,
  i32Xor: 0x73,
  i32Rotl: 0x77,
  emptyBlock: 0x40,
} as const;

/** `i32.const value`, for small positive values. */
export function i32Const(value: number): number[] {
  return [op.i32Const, ...signedLeb128(value)];
}

/** An unsigned LEB128 number. */
export function leb128(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  do {
    const byte = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest === 0 ? byte : byte + 128);
  } while (rest !== 0);
  return Uint8Array.from(bytes);
}

/** Joins byte arrays and plain numbers. */
export function concat(
  parts: readonly Uint8Array[] | readonly number[],
): Uint8Array {
  if (parts.every((part) => typeof part === "number")) {
    return Uint8Array.from(parts);
  }
  return new Uint8Array(Buffer.concat(parts));
}

const componentPreamble = Uint8Array.of(0, 0x61, 0x73, 0x6d, 0x0d, 0, 1, 0);
const i32 = 0x7f;
const i64 = 0x7e;

function signedLeb128(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 63) {
    bytes.push((rest % 128) + 128);
    rest = Math.floor(rest / 128);
  }
  return [...bytes, rest];
}

function section(id: number, content: readonly Uint8Array[]): Uint8Array {
  const bytes = concat(content);
  return concat([Uint8Array.of(id), leb128(bytes.length), bytes]);
}

function vector(items: readonly Uint8Array[]): Uint8Array[] {
  return [leb128(items.length), ...items];
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value, "utf8");
  return concat([leb128(bytes.length), bytes]);
}

function exported(name: string, kind: number, index: number): Uint8Array {
  return concat([text(name), Uint8Array.of(kind), leb128(index)]);
}

function body({ locals, code }: FunctionBody): Uint8Array {
  const declared =
    locals === 0
      ? Uint8Array.of(0)
      : concat([Uint8Array.of(1), leb128(locals), Uint8Array.of(i32)]);
  const size = declared.length + code.length + 1;
  return concat([leb128(size), declared, code, Uint8Array.of(op.end)]);
}
