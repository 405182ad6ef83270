;; Counts the bytes of its untouched memory that are not zero, the table slots that are not null
;; and a changed global: must answer 00000000, whoever ran before.
(module
  (table $t 1000 funcref)
  (global $mark (mut i32) (i32.const 0))
  (memory (export "memory") 17)
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $at i32) (local $found i32)
    (local.set $at (i32.const 65536))
    (loop $byte
      (local.set $found
        (i32.add (local.get $found) (i32.ne (i32.load8_u (local.get $at)) (i32.const 0))))
      (br_if $byte
        (i32.lt_u
          (local.tee $at (i32.add (local.get $at) (i32.const 1)))
          (i32.const 1114112))))
    (local.set $at (i32.const 0))
    (loop $slot
      (local.set $found
        (i32.add
          (local.get $found)
          (i32.eqz (ref.is_null (table.get $t (local.get $at))))))
      (br_if $slot
        (i32.lt_u
          (local.tee $at (i32.add (local.get $at) (i32.const 1)))
          (i32.const 1000))))
    (call $report (i32.add (local.get $found) (global.get $mark))))
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
