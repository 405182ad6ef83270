;; Calls through a typed function reference.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (type $f (func))
  (func (param (ref $f)) (call_ref $f (local.get 0)))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
