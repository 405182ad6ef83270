;; A start function that writes the answer; without it the answer would be "0".
(module
  (memory (export "memory") 2)
  (data (i32.const 16) "\1a\05\08\03\12\010")
  (func $start (i32.store8 (i32.const 22) (i32.const 49)))
  (start $start)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0x10_0000_0007)))
