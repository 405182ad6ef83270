;; Writes a line to stdout and one to stderr.
(module
  (import "wasi:cli/stdout@0.2.0" "get-stdout"
    (func $stdout (result i32)))
  (import "wasi:cli/stderr@0.2.0" "get-stderr"
    (func $stderr (result i32)))
  (import "wasi:io/streams@0.2.0" "[method]output-stream.blocking-write-and-flush"
    (func $write (param i32 i32 i32 i32)))
  (memory (export "memory") 2)
  ;; ok(64, 14): one result whose message is eight characters.
  (data (i32.const 32) "\00\00\00\00\40\00\00\00\0e\00\00\00")
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (data (i32.const 256) "out of run\nerr of run\n")
  (global $heap (mut i32) (i32.const 65536))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $ptr i32)
    (local.set $ptr (global.get $heap))
    (global.set $heap
      (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
    (local.get $ptr))
  (func (export "run") (param i32 i32) (result i32)
    (call $write (call $stdout) (i32.const 256) (i32.const 11) (i32.const 512))
    (if (i32.load8_u (i32.const 512)) (then (unreachable)))
    (call $write (call $stderr) (i32.const 267) (i32.const 11) (i32.const 512))
    (if (i32.load8_u (i32.const 512)) (then (unreachable)))
    (call $report (i32.const 0)))
  ;; The answer: one result whose message is eight hex digits.
  (func $report (param $value i32) (result i32)
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
    (i32.const 32)))
