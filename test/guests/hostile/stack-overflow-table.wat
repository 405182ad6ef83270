;; Two functions that call each other through the table for ever.
(module
  (table 2 funcref)
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (type $step (func (param i64) (result i64)))
  (func $even (type $step)
    (i64.add (i64.const 1) (call_indirect (type $step) (local.get 0) (i32.const 1))))
  (func $odd (type $step)
    (i64.add (i64.const 2) (call_indirect (type $step) (local.get 0) (i32.const 0))))
  (elem (i32.const 0) $even $odd)
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call_indirect (type $step) (i64.const 0) (i32.const 0))))
