import {
  assembleCoreModule,
  concat,
  i32Const,
  leb128,
  op,
  type FunctionBody,
} from "./wasm-binary.js";

const nothing: FunctionBody = { locals: 0, code: new Uint8Array() };

/** A module with that many more functions, all of them empty. */
export function manyFunctions(count: number): Uint8Array {
  const extraFunctions = new Array<FunctionBody>(count).fill(nothing);
  return assembleCoreModule({ extraFunctions });
}

/** A function with that many locals. */
export function manyLocals(count: number): Uint8Array {
  return assembleCoreModule({
    extraFunctions: [{ ...nothing, locals: count }],
  });
}

/** A module with that many data segments, all of them empty. */
export function manyDataSegments(count: number): Uint8Array {
  return assembleCoreModule({ dataSegments: count });
}

/** A good module with a custom section of that size, which means nothing. */
export function largeCustomSection(sizeBytes: number): Uint8Array {
  return assembleCoreModule({ customBytes: sizeBytes });
}

/** A module with one export name of that length. */
export function longExportName(lengthBytes: number): Uint8Array {
  return assembleCoreModule({ exportNames: ["x".repeat(lengthBytes)] });
}

/** A function of blocks inside blocks: compilers that recurse die of it. */
export function nestedBlocks(depth: number): Uint8Array {
  const open = Buffer.alloc(depth * 2);
  for (let index = 0; index < depth; index++) {
    open[index * 2] = op.block;
    open[index * 2 + 1] = op.emptyBlock;
  }
  const code = concat([open, Buffer.alloc(depth, op.end)]);
  return assembleCoreModule({ extraFunctions: [{ locals: 0, code }] });
}

/** One function whose body has about that many bytes of arithmetic. */
export function hugeFunction(sizeBytes: number): Uint8Array {
  const code = arithmetic(sizeBytes, 1);
  return assembleCoreModule({ extraFunctions: [{ locals: 4, code }] });
}

/**
 * A few KB whose compilation needs `locals` × `loops` values: each loop is entered with a value of
 * each local, and each of them may come around again.
 */
export function compileBomb(locals: number, loops: number): Uint8Array {
  const parts: Uint8Array[] = [];
  for (let index = 0; index < loops; index++) {
    parts.push(Uint8Array.of(op.loop, op.emptyBlock));
  }
  for (let index = 0; index < locals; index++) {
    const local = leb128(index);
    parts.push(
      concat([
        ...[Uint8Array.of(op.localGet), local],
        ...[Uint8Array.of(...i32Const(1), op.i32Add)],
        ...[Uint8Array.of(op.localSet), local],
      ]),
    );
  }
  for (let index = 0; index < loops; index++) {
    parts.push(Uint8Array.of(op.localGet, 0, op.br_if, 0, op.end));
  }
  return assembleCoreModule({
    extraFunctions: [{ locals, code: concat(parts) }],
  });
}

/**
 * A good module of about that size that takes the compiler a while, some seconds for 4 MB. `seed`
 * makes it another module.
 */
export function slowModule(sizeBytes: number, seed = 0): Uint8Array {
  return assembleCoreModule({
    extraFunctions: plainFunctions(sizeBytes, seed),
  });
}

/** As {@link slowModule}, but without the exports of any ABI. */
export function wrongShapeModule(sizeBytes: number): Uint8Array {
  const extraFunctions = plainFunctions(sizeBytes, 0);
  return assembleCoreModule({ extraFunctions, withoutExports: true });
}

/** As {@link slowModule}, but with an import of the host that has another type there. */
export function wrongImportModule(sizeBytes: number): Uint8Array {
  return assembleCoreModule({
    extraFunctions: plainFunctions(sizeBytes, 0),
    imports: [{ module: "wasi_snapshot_preview1", name: "fd_write" }],
  });
}

/**
 * The text of a component that instantiates a module of so many globals so many times, and then is
 * a good one with an empty answer.
 */
export function manyInstances(globals: number, instances: number): string {
  return componentWith(
    `(core module $part ${"(global i32 (i32.const 0))".repeat(globals)})
    ${"(core instance (instantiate $part))".repeat(instances)}`,
  );
}

/** The text of a component that makes `times` instances of a component of `times` instances. */
export function nestedInstances(times: number): string {
  return componentWith(
    `(component $inner
      (core module $part (global i32 (i32.const 0)))
      ${"(core instance (instantiate $part))".repeat(times)})
    ${"(instance (instantiate $inner))".repeat(times)}`,
  );
}

/**
 * The text of a good component with an empty answer, and `definitions` before its own. Its core may
 * import functions `(i32) -> i32` from "host", which `definitions` makes: `(core instance $host …)`.
 */
export function componentWith(
  definitions: string,
  core: { readonly imports?: string; readonly run?: string } = {},
): string {
  const host =
    core.imports === undefined ? "" : '(with "host" (instance $host))';
  return `(component
    (type $run-type
      (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
    ${definitions}
    (core module $main-module
      ${core.imports ?? ""}
      (memory (export "memory") 1)
      (data (i32.const 32) "\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00\\00")
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "run") (param i32 i32) (result i32)
        ${core.run ?? ""}
        (i32.const 32)))
    (core instance $main (instantiate $main-module ${host}))
    (func $run (type $run-type)
      (canon lift (core func $main "run")
        (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
    (export "run" (func $run)))`;
}

/**
 * The text of a component with `count` inner modules, each with a memory of its own that it grows
 * page by page until refused; answers with the pages all of them hold, as eight hex digits.
 */
export function manyMemories(count: number): string {
  const each = (line: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => line(index)).join("\n");
  return `(component
    (type $run-type
      (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
    (core module $part
      (memory 1)
      (func (export "grow") (result i32)
        (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
        (memory.size)))
    ${each((index) => `(core instance $part${index} (instantiate $part))`)}
    (core module $main-module
      ${each((index) => `(import "part${index}" "grow" (func $grow${index} (result i32)))`)}
      (memory (export "memory") 1)
      (data (i32.const 32) "\\00\\00\\00\\00\\40\\00\\00\\00\\0e\\00\\00\\00")
      (data (i32.const 64) "\\1a\\0c\\08\\03\\12\\08")
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
      (func (export "run") (param i32 i32) (result i32)
        (local $pages i32) (local $i i32) (local $digit i32)
        ${each((index) => `(local.set $pages (i32.add (local.get $pages) (call $grow${index})))`)}
        (loop $next
          (local.set $digit (i32.and (local.get $pages) (i32.const 15)))
          (i32.store8
            (i32.sub (i32.const 77) (local.get $i))
            (i32.add
              (local.get $digit)
              (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10)))))
          (local.set $pages (i32.shr_u (local.get $pages) (i32.const 4)))
          (br_if $next
            (i32.lt_u
              (local.tee $i (i32.add (local.get $i) (i32.const 1)))
              (i32.const 8))))
        (i32.const 32)))
    (core instance $main
      (instantiate $main-module
        ${each((index) => `(with "part${index}" (instance $part${index}))`)}))
    (func $run (type $run-type)
      (canon lift (core func $main "run")
        (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
    (export "run" (func $run)))`;
}

/** An HTML page, as a proxy or a wrong URL gives it. */
export function htmlPage(): Uint8Array {
  return Buffer.from("<!DOCTYPE html>\n<html><body>404</body></html>\n");
}

/** The header of a file as wasmtime's own compiler writes it: an ELF object of its own ABI. */
export function precompiledFile(): Uint8Array {
  const header = Buffer.alloc(64);
  // Magic, 64-bit, little-endian, version 1, OS ABI of wasmtime.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 200]);
  header.writeUInt16LE(1, 16);
  header.writeUInt16LE(62, 18);
  header.writeUInt32LE(1, 20);
  // e_flags: this is a module.
  header.writeUInt32LE(1, 48);
  header.writeUInt16LE(64, 52);
  return Buffer.concat([header, Buffer.alloc(4096)]);
}

const PLAIN_FUNCTION_BYTES = 2000;

function plainFunctions(sizeBytes: number, seed: number): FunctionBody[] {
  const count = Math.ceil(sizeBytes / PLAIN_FUNCTION_BYTES);
  const code = arithmetic(PLAIN_FUNCTION_BYTES, seed);
  return new Array<FunctionBody>(count).fill({ locals: 4, code });
}

/** Straight-line code on four locals of about that many bytes. */
function arithmetic(sizeBytes: number, seed: number): Uint8Array {
  const operators = [op.i32Add, op.i32Mul, op.i32Xor, op.i32Rotl];
  const parts: number[] = [];
  for (let step = seed; parts.length < sizeBytes; step++) {
    parts.push(op.localGet, step % 4, ...i32Const((step % 1000) + 1));
    parts.push(operators[(step >> 2) % 4] ?? op.i32Add);
    parts.push(op.localGet, (step + 1) % 4, op.i32Add, op.localSet, step % 4);
  }
  return concat(parts);
}
