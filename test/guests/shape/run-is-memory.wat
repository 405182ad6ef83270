;; Exports wasmfn_run as its memory.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (export "wasmfn_run" (memory 0)))
