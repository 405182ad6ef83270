;; Logs one info line with fields and one debug line through wasmfn.log.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (data (i32.const 256) "{\"msg\":\"rendered\",\"kv\":{\"objects\":\"3\",\"kind\":\"ConfigMap\"}}")
  (data (i32.const 512) "{\"msg\":\"details\"}")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $log (i32.const 0) (i32.const 256) (i32.const 58))
    (call $log (i32.const 1) (i32.const 512) (i32.const 17))
    (i64.const 0)))
