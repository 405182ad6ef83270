;; Writes an escape sequence, a NUL, a carriage return and bytes that are no UTF-8 to stderr.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\00\01\00\00\13\00\00\00") ;; iovec: 256, 19
  (data (i32.const 256) "red\1b[31m nul\00 cr\0d\ff\0a")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (if (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 32)) (then (unreachable)))
    (i64.const 0)))
