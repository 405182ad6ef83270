;; Returns a response of 200 MB.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (if (i32.eq (memory.grow (i32.const 3100)) (i32.const -1)) (then (unreachable)))
    (i64.const 200000000)))
