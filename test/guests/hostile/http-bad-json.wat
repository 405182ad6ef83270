;; Asks with text that is no JSON: answers 00000001 when the host refuses in-band.
(module
  (import "wasmfn" "http" (func $http (param i32 i32) (result i64)))
  (memory (export "memory") 2)
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (data (i32.const 256) "not json")
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (call $report (i32.ne (i32.wrap_i64 (call $http (i32.const 256) (i32.const 8))) (i32.const 0))))
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
