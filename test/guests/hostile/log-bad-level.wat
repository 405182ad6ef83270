;; Logs with a level that does not exist, and still answers.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"msg\":\"level 99\"}")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $log (i32.const 99) (i32.const 256) (i32.const 18))
    (i64.const 0)))
