;; Uses a 64-bit memory.
(module
  (memory (export "memory") i64 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
