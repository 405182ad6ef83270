;; Calls a function through the table with another signature.
(module
  (table 1 funcref)
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func $other (param f64) (result f64) (local.get 0))
  (elem (i32.const 0) $other)
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call_indirect (result i64) (i32.const 0))))
