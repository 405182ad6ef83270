;; Asks for a URL for ever.
(module
  (import "wasmfn" "http" (func $http (param i32 i32) (result i64)))
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "{\"method\":\"GET\",\"url\":\"https://api.example.com/\"}")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (loop $again (drop (call $http (i32.const 256) (i32.const 49))) (br $again))
    (unreachable)))
