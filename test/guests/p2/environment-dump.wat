;; Answers with its whole environment as `NAME=value;NAME=value;`, at most 120 bytes of it.
(module
  (import "wasi:cli/environment@0.2.0" "get-environment"
    (func $environment (param i32)))
  (memory (export "memory") 2)
  ;; ok(64, length)
  (data (i32.const 32) "\00\00\00\00\40\00\00\00\00\00\00\00")
  ;; One result whose message is what follows.
  (data (i32.const 64) "\1a\00\08\03\12\00")
  (global $heap (mut i32) (i32.const 65536))
  (global $end (mut i32) (i32.const 70))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $ptr i32)
    (local.set $ptr (global.get $heap))
    (global.set $heap
      (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
    (local.get $ptr))
  (func $append (param $text i32) (param $length i32) (param $after i32)
    (memory.copy (global.get $end) (local.get $text) (local.get $length))
    (global.set $end (i32.add (global.get $end) (local.get $length)))
    (i32.store8 (global.get $end) (local.get $after))
    (global.set $end (i32.add (global.get $end) (i32.const 1))))
  (func (export "run") (param i32 i32) (result i32)
    (local $pair i32) (local $left i32) (local $length i32)
    (call $environment (i32.const 256))
    (local.set $pair (i32.load (i32.const 256)))
    (local.set $left (i32.load (i32.const 260)))
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get $left)))
        (call $append
          (i32.load (local.get $pair)) (i32.load offset=4 (local.get $pair)) (i32.const 61))
        (call $append
          (i32.load offset=8 (local.get $pair)) (i32.load offset=12 (local.get $pair)) (i32.const 59))
        (local.set $pair (i32.add (local.get $pair) (i32.const 16)))
        (local.set $left (i32.sub (local.get $left) (i32.const 1)))
        (br $next)))
    (local.set $length (i32.sub (global.get $end) (i32.const 70)))
    (if (i32.gt_u (local.get $length) (i32.const 120)) (then (unreachable)))
    (i32.store8 (i32.const 65) (i32.add (local.get $length) (i32.const 4)))
    (i32.store8 (i32.const 69) (local.get $length))
    (i32.store (i32.const 40) (i32.add (local.get $length) (i32.const 6)))
    (i32.const 32)))
