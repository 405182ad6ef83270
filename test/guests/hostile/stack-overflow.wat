;; Recurses for ever. The result is used after the call, so it is no tail call.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func $deeper (param i64) (result i64)
    (i64.add (i64.const 1) (call $deeper (i64.add (local.get 0) (i64.const 1)))))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $deeper (i64.const 0))))
