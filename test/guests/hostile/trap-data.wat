;; A data segment that does not fit its memory: traps at instantiation.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 131071) "two")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0)))
