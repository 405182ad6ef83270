;; Logs one line whose message is 16 MiB long.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 300)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"msg\":\"")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (memory.fill (i32.const 264) (i32.const 120) (i32.const 16777216))
    (i32.store16 (i32.const 16777480) (i32.const 0x7d22)) ;; "}
    (call $log (i32.const 0) (i32.const 256) (i32.const 16777226))
    (i64.const 0)))
