;; Writes 100,000 short lines to stdout and still answers.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\00\01\00\00\0b\00\00\00") ;; iovec: 256, 11
  (data (i32.const 256) "flood line\n")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $i i32)
    (loop $next
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
      (br_if $next
        (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 1)))
          (i32.const 100000))))
    (i64.const 0)))
