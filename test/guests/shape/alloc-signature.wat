;; wasmfn_alloc takes an i64.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i64) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
