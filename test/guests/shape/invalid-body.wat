;; Well-formed, but a function body has the wrong type.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (i32.add (i64.const 1)))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
