;; echo.wat as a component (ABI v2) with a sync-lifted run. The result lies at address 16: a zero byte
;; for ok, then pointer and length of the list, which stay zero when there is no desired state.
(component
  (core module $guest
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 1024))
    ;; Only ever asked for new memory: nothing here grows a list.
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $ptr i32) (local $pages i32)
      (local.set $ptr (global.get $heap))
      (global.set $heap (i32.add (local.get $ptr) (local.get $size)))
      (local.set $pages
        (i32.sub
          (i32.add (i32.shr_u (global.get $heap) (i32.const 16)) (i32.const 1))
          (memory.size)))
      (if (i32.gt_s (local.get $pages) (i32.const 0))
        (then
          (if (i32.eq (memory.grow (local.get $pages)) (i32.const -1)) (then (unreachable)))))
      (local.get $ptr))
    ;; Reads the varint at $ptr: its value in the low half, the address after it in the high half.
    (func $varint (param $ptr i32) (result i64)
      (local $value i32) (local $shift i32) (local $byte i32)
      (loop $more
        (local.set $byte (i32.load8_u (local.get $ptr)))
        (local.set $value
          (i32.or (local.get $value)
            (i32.shl (i32.and (local.get $byte) (i32.const 0x7f)) (local.get $shift))))
        (local.set $ptr (i32.add (local.get $ptr) (i32.const 1)))
        (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
        (br_if $more (i32.ge_u (local.get $byte) (i32.const 0x80))))
      (i64.or
        (i64.shl (i64.extend_i32_u (local.get $ptr)) (i64.const 32))
        (i64.extend_i32_u (local.get $value))))
    (func (export "run") (param $ptr i32) (param $len i32) (result i32)
      (local $end i32) (local $field i32) (local $length i64)
      (local.set $end (i32.add (local.get $ptr) (local.get $len)))
      (block $none
        (loop $next
          (br_if $none (i32.ge_u (local.get $ptr) (local.get $end)))
          (local.set $field (local.get $ptr))
          (local.set $length (call $varint (i32.add (local.get $ptr) (i32.const 1))))
          (local.set $ptr
            (i32.add
              (i32.wrap_i64 (i64.shr_u (local.get $length) (i64.const 32)))
              (i32.wrap_i64 (local.get $length))))
          (br_if $next (i32.ne (i32.load8_u (local.get $field)) (i32.const 0x1a))))
        (i32.store8 (local.get $field) (i32.const 0x12))
        (i32.store (i32.const 20) (local.get $field))
        (i32.store (i32.const 24) (i32.sub (local.get $ptr) (local.get $field))))
      (i32.const 16)))
  (core instance $i (instantiate $guest))
  (func (export "run") (param "request" (list u8)) (result (result (list u8) (error string)))
    (canon lift
      (core func $i "run")
      (memory (core memory $i "memory"))
      (realloc (core func $i "realloc")))))
