;; Writes one line to stdout and one to stderr, then a last stderr line without its newline.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\00\01\00\00\0b\00\00\00") ;; iovec: 256, 11
  (data (i32.const 8) "\20\01\00\00\0b\00\00\00") ;; iovec: 288, 11
  (data (i32.const 16) "\40\01\00\00\0a\00\00\00") ;; iovec: 320, 10
  (data (i32.const 256) "out of run\n")
  (data (i32.const 288) "err of run\n")
  (data (i32.const 320) "no newline")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (if (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)) (then (unreachable)))
    (if (call $write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 32)) (then (unreachable)))
    (if (call $write (i32.const 2) (i32.const 16) (i32.const 1) (i32.const 32)) (then (unreachable)))
    (i64.const 0)))
