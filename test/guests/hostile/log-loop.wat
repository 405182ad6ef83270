;; Logs for ever.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"msg\":\"again\"}")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (loop $again (call $log (i32.const 0) (i32.const 256) (i32.const 15)) (br $again))
    (unreachable)))
