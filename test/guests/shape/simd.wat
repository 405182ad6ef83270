;; Uses a SIMD instruction: a good module.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (param v128 v128) (result v128)
    (i8x16.add (local.get 0) (local.get 1)))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
