;; Answers with argv[0]; traps unless there is exactly one argument.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $get (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (if (call $sizes (i32.const 0) (i32.const 4)) (then (unreachable)))
    (if (i32.ne (i32.load (i32.const 0)) (i32.const 1)) (then (unreachable)))
    ;; "function" and its NUL
    (if (i32.ne (i32.load (i32.const 4)) (i32.const 9)) (then (unreachable)))
    (if (call $get (i32.const 8) (i32.const 70)) (then (unreachable)))
    (i64.const 0x40_0000_000e)))
