;; Copies one half of its memory over the other for ever.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (drop (memory.grow (i32.const 1000)))
    (loop $again
      (memory.copy
        (i32.const 0)
        (i32.mul (memory.size) (i32.const 32768))
        (i32.mul (memory.size) (i32.const 32768)))
      (br $again))
    (unreachable)))
