;; Logs from beyond its memory.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $log (i32.const 0) (i32.const 0x7fffffff) (i32.const 15))
    (i64.const 0)))
