;; Traps in a function whose name holds an escape sequence and a newline.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func $"evil\1b[31m\nfatal: forged line" (unreachable))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $"evil\1b[31m\nfatal: forged line")
    (i64.const 0)))
