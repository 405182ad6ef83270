;; Tries /etc/passwd, etc/passwd and ../../etc/passwd below descriptors 0 to 15 with read rights;
;; answers with the number of successes.
(module
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (data (i32.const 256) "../../etc/passwd")
  (func $try (param $fd i32) (param $ptr i32) (param $len i32) (result i32)
    (i32.eqz
      (call $open
        (local.get $fd) (i32.const 1) (local.get $ptr) (local.get $len)
        (i32.const 0) (i64.const 2) (i64.const 2) (i32.const 0) (i32.const 32))))
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $fd i32) (local $opened i32)
    (loop $next
      (local.set $opened
        (i32.add (local.get $opened)
          (i32.add
            (call $try (local.get $fd) (i32.const 261) (i32.const 11)) ;; /etc/passwd
            (i32.add
              (call $try (local.get $fd) (i32.const 262) (i32.const 10)) ;; etc/passwd
              (call $try (local.get $fd) (i32.const 256) (i32.const 16))))))
      (br_if $next
        (i32.lt_u
          (local.tee $fd (i32.add (local.get $fd) (i32.const 1)))
          (i32.const 16))))
    (call $report (local.get $opened)))
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
