;; Exports wasmfn_run as a global.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (global (export "wasmfn_run") i64 (i64.const 0)))
