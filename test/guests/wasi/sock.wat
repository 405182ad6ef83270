;; Tries every socket call on descriptors 0 to 15; answers with the number of successes.
(module
  (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_recv"
    (func $recv (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_send"
    (func $send (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "sock_shutdown" (func $shutdown (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "\00\01\00\00\04\00\00\00") ;; iovec: 256, 4
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $fd i32) (local $ok i32)
    (loop $next
      (local.set $ok
        (i32.add (local.get $ok)
          (i32.add
            (i32.add
              (i32.eqz (call $accept (local.get $fd) (i32.const 0) (i32.const 32)))
              (i32.eqz
                (call $recv (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 0)
                  (i32.const 32) (i32.const 36))))
            (i32.add
              (i32.eqz
                (call $send (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 0)
                  (i32.const 32)))
              (i32.eqz (call $shutdown (local.get $fd) (i32.const 1)))))))
      (br_if $next
        (i32.lt_u
          (local.tee $fd (i32.add (local.get $fd) (i32.const 1)))
          (i32.const 16))))
    (call $report (local.get $ok)))
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
