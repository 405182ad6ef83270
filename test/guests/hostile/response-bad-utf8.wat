;; Returns a result whose message is no UTF-8.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 16) "\1a\06\08\03\12\02\ff\fe")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0x10_0000_0008)))
