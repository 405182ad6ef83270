;; Fills all the memory it can get for ever: bulk instructions are not interrupted inside.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (drop (memory.grow (i32.const 1000)))
    (loop $again
      (memory.fill (i32.const 0) (i32.const 171) (i32.mul (memory.size) (i32.const 65536)))
      (br $again))
    (unreachable)))
