;; Grows by the largest power of two it can get, 2 GiB at most, and fills its memory for ever: a bulk
;; instruction is not interrupted inside.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $pages i32)
    (local.set $pages (i32.const 32768))
    (loop $smaller
      (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1))
        (then
          (local.set $pages (i32.shr_u (local.get $pages) (i32.const 1)))
          (br_if $smaller (local.get $pages)))))
    (loop $again
      (memory.fill (i32.const 0) (i32.const 171) (i32.mul (memory.size) (i32.const 65536)))
      (br $again))
    (unreachable)))
