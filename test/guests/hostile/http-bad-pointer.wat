;; Asks for a URL that lies beyond its memory.
(module
  (import "wasmfn" "http" (func $http (param i32 i32) (result i64)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (drop (call $http (i32.const 0x7fffffff) (i32.const 64)))
    (i64.const 0)))
