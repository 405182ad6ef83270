;; Answers with the only argument, "function"; traps when there is another one or any variable.
(module
  (import "wasi:cli/environment@0.2.0" "get-arguments"
    (func $arguments (param i32)))
  (import "wasi:cli/environment@0.2.0" "get-environment"
    (func $environment (param i32)))
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
    (local $first i32)
    (call $environment (i32.const 256))
    (if (i32.load (i32.const 260)) (then (unreachable)))
    (call $arguments (i32.const 256))
    (if (i32.ne (i32.load (i32.const 260)) (i32.const 1)) (then (unreachable)))
    (local.set $first (i32.load (i32.const 256)))
    (if (i32.ne (i32.load offset=4 (local.get $first)) (i32.const 8)) (then (unreachable)))
    (i64.store (i32.const 70) (i64.load (i32.load (local.get $first))))
    (i32.const 32)))
