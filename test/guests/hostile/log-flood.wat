;; Logs 100,000 lines and still answers.
(module
  (import "wasmfn" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"msg\":\"flood\"}")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $i i32)
    (loop $next
      (call $log (i32.const 0) (i32.const 256) (i32.const 15))
      (br_if $next
        (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 1)))
          (i32.const 100000))))
    (i64.const 0)))
