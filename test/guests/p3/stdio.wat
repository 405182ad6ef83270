;; Writes a line to stdout and one to stderr of WASI 0.3, each through a stream of its own, and waits
;; until the host has taken them. Answers with nothing.
(module
  (import "wasi:cli/stdout@0.3.0" "write-via-stream" (func $out (param i32) (result i32)))
  (import "wasi:cli/stdout@0.3.0" "[stream-new-0]write-via-stream" (func $out-new (result i64)))
  (import "wasi:cli/stdout@0.3.0" "[async-lower][stream-write-0]write-via-stream"
    (func $out-write (param i32 i32 i32) (result i32)))
  (import "wasi:cli/stdout@0.3.0" "[stream-drop-writable-0]write-via-stream"
    (func $out-drop (param i32)))
  (import "wasi:cli/stderr@0.3.0" "write-via-stream" (func $err (param i32) (result i32)))
  (import "wasi:cli/stderr@0.3.0" "[stream-new-0]write-via-stream" (func $err-new (result i64)))
  (import "wasi:cli/stderr@0.3.0" "[async-lower][stream-write-0]write-via-stream"
    (func $err-write (param i32 i32 i32) (result i32)))
  (import "wasi:cli/stderr@0.3.0" "[stream-drop-writable-0]write-via-stream"
    (func $err-drop (param i32)))
  (import "$root" "[waitable-set-new]" (func $set-new (result i32)))
  (import "$root" "[waitable-join]" (func $join (param i32 i32)))
  (import "$root" "[waitable-set-wait]" (func $wait (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 32) "\00\00\00\00\00\00\00\00\00\00\00\00") ;; ok(0, 0)
  (data (i32.const 64) "out of run\n")
  (data (i32.const 96) "err of run\n")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "run") (param i32 i32) (result i32)
    (local $ends i64) (local $writable i32)
    ;; The low half is the readable end, the high half the writable one.
    (local.set $ends (call $out-new))
    (local.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
    (drop (call $out (i32.wrap_i64 (local.get $ends))))
    (call $wait-for
      (local.get $writable)
      (call $out-write (local.get $writable) (i32.const 64) (i32.const 11)))
    (call $out-drop (local.get $writable))
    (local.set $ends (call $err-new))
    (local.set $writable (i32.wrap_i64 (i64.shr_u (local.get $ends) (i64.const 32))))
    (drop (call $err (i32.wrap_i64 (local.get $ends))))
    (call $wait-for
      (local.get $writable)
      (call $err-write (local.get $writable) (i32.const 96) (i32.const 11)))
    (call $err-drop (local.get $writable))
    (i32.const 32))
  ;; -1 = the write is under way
  (func $wait-for (param $writable i32) (param $status i32)
    (local $set i32)
    (if (i32.ne (local.get $status) (i32.const -1)) (then (return)))
    (local.set $set (call $set-new))
    (call $join (local.get $writable) (local.get $set))
    (drop (call $wait (local.get $set) (i32.const 128)))))
