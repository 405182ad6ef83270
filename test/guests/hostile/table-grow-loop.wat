;; Grows a table by 4,096 slots until refused; answers with the slots it holds in the end.
(module
  (table $t 1 funcref)
  (memory (export "memory") 2)
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (loop $again
      (br_if $again (i32.ne (table.grow $t (ref.null func) (i32.const 4096)) (i32.const -1))))
    (call $report (table.size $t)))
  ;; The answer: one result whose message is eight hex digits.
  (func $report (param $value i32) (result i64)
    (local $i i32) (local $digit i32)
    (loop $next
      (local.set $digit (i32.and (local.get $value) (i32.const 15)))
      (i32.store8
        (i32.sub (i32.const 77) (local.get $i))
        (i32.add
          (local.get $digit)
          (select (i32.const 48) (i32.const 87) (i32.lt_u (local.get $digit) (i32.const 10)))))
      (local.set $value (i32.shr_u (local.get $value) (i32.const 4)))
      (br_if $next
        (i32.lt_u
          (local.tee $i (i32.add (local.get $i) (i32.const 1)))
          (i32.const 8))))
    (i64.const 0x40_0000_000e)))
