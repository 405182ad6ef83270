;; Uses bulk memory, multi-value, sign extension and saturating conversion: a good module.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (table $t 1 funcref)
  (func (result i32 i32)
    (table.set $t (i32.const 0) (ref.null func))
    (memory.fill (i32.const 0) (i32.const 0) (i32.const 1))
    (i32.extend8_s (i32.const 1))
    (i32.trunc_sat_f32_s (f32.const 1)))
  (func (export "wasmfn_run") (param i32 i32) (result i64) (i64.const 0)))
