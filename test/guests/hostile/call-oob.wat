;; Calls a table slot beyond the end of the table.
(module
  (table 1 funcref)
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call_indirect (result i64) (i32.const 1000000))))
