;; Fills the garbage-collected heap for ever.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (type $bytes (array i8))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (loop $again
      (drop (array.new $bytes (i32.const 0) (i32.const 1000000)))
      (br $again))
    (unreachable)))
