;; Stores beyond the end of its memory.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i32.store (i32.const 131070) (i32.const 1))
    (i64.const 0)))
