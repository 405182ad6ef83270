;; Returns a response that begins inside its memory and ends one byte behind it.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0x1fff0_0000_0011)))
