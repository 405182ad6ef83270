;; Uses a 128-bit addition.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (result i64 i64)
    (i64.add128 (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4)))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
