;; Answers with its whole environment as `NAME=value;NAME=value;`, at most 120 bytes of it.
(module
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $get (param i32 i32) (result i32)))
  (memory (export "memory") 2)
  ;; One result whose message is what follows.
  (data (i32.const 64) "\1a\00\08\03\12\00")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 4096))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $length i32) (local $i i32)
    (if (call $sizes (i32.const 0) (i32.const 4)) (then (unreachable)))
    (local.set $length (i32.load (i32.const 4)))
    (if (i32.gt_u (local.get $length) (i32.const 120)) (then (unreachable)))
    (if (call $get (i32.const 1024) (i32.const 70)) (then (unreachable)))
    (block $end
      (loop $next
        (br_if $end (i32.eq (local.get $i) (local.get $length)))
        (if (i32.eqz (i32.load8_u offset=70 (local.get $i)))
          (then (i32.store8 offset=70 (local.get $i) (i32.const 59))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (i32.store8 (i32.const 65) (i32.add (local.get $length) (i32.const 4)))
    (i32.store8 (i32.const 69) (local.get $length))
    (i64.or
      (i64.const 0x40_0000_0000)
      (i64.extend_i32_u (i32.add (local.get $length) (i32.const 6))))))
