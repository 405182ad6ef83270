;; Exports wasmfn_run as a table.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (table (export "wasmfn_run") 1 funcref))
