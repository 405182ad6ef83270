;; Logs 30,000 nested JSON arrays, which a recursive reader dies of, and still answers.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"msg\":\"deep\",\"kv\":{\"k\":")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (memory.fill (i32.const 280) (i32.const 91) (i32.const 30000))
    (memory.fill (i32.const 30280) (i32.const 93) (i32.const 30000))
    (i32.store16 (i32.const 60280) (i32.const 0x7d7d))
    (call $log (i32.const 0) (i32.const 256) (i32.const 60026))
    (i64.const 0)))
