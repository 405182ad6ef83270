;; Asks the host for 1 TiB of random bytes in one call.
(module
  (import "wasi:random/random@0.2.0" "get-random-bytes"
    (func $random (param i64 i32)))
  (memory (export "memory") 2)
  ;; ok(64, 14): one result whose message is eight characters.
  (data (i32.const 32) "\00\00\00\00\40\00\00\00\0e\00\00\00")
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (global $heap (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $ptr i32)
    (local.set $ptr (global.get $heap))
    (global.set $heap
      (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
    (local.get $ptr))
  (func (export "run") (param i32 i32) (result i32)
    (call $random (i64.const 1099511627776) (i32.const 256))
    (i32.const 32)))
