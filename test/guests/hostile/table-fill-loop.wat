;; Grows a table as far as it can and fills it for ever.
(module
  (table $t 1 funcref)
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (drop (table.grow $t (ref.null func) (i32.const 1000000)))
    (loop $again
      (table.fill $t (i32.const 0) (ref.null func) (table.size $t))
      (br $again))
    (unreachable)))
