;; Declares a table of 4,294,967,295 slots.
(module
  (table 4294967295 funcref)
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0)))
