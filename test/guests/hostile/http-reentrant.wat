;; Its wasmfn_alloc asks for a URL, whose reply needs wasmfn_alloc: recursion through the host.
(module
  (import "wasmfn" "http" (func $http (param i32 i32) (result i64)))
  (memory (export "memory") 2)
  (data (i32.const 256) "{\"method\":\"GET\",\"url\":\"https://api.example.com/\"}")
  (func $ask (result i64) (call $http (i32.const 256) (i32.const 49)))
  ;; The first call is for the request and returns at once.
  (global $calls (mut i32) (i32.const 0))
  (func (export "wasmfn_alloc") (param i32) (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (if (i32.gt_u (global.get $calls) (i32.const 1)) (then (drop (call $ask))))
    (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (drop (call $ask))
    (i64.const 0)))
