;; Divides by zero.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.extend_i32_u (i32.div_u (i32.const 1) (i32.load (i32.const 0))))))
