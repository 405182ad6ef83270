;; The smallest good module: a constant response holding one result, "hello world".
(module
  (memory (export "memory") 2)
  (data (i32.const 16) "\1a\0f\08\03\12\0bhello world")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0x10_0000_0011)))
