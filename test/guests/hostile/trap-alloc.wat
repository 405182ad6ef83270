;; Its wasmfn_alloc traps.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (unreachable))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0)))
