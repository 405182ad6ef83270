;; Floods stdout for ever with 64 KiB writes that hold no newline.
(module
  (import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\00\00\01\00\00\00\01\00") ;; iovec: 65536, 65536
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (memory.fill (i32.const 65536) (i32.const 120) (i32.const 65536))
    (loop $again
      (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 32)))
      (br $again))
    (unreachable)))
