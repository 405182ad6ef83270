;; Connects to 127.0.0.1:80. Answers 00000000 for a connection and 000001xx for a refusal with
;; error code xx.
(module
  (import "wasi:sockets/instance-network@0.2.0" "instance-network"
    (func $network (result i32)))
  (import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket"
    (func $create (param i32 i32)))
  (import "wasi:sockets/tcp@0.2.0" "[method]tcp-socket.start-connect"
    (func $connect (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:sockets/tcp@0.2.0" "[method]tcp-socket.finish-connect"
    (func $finish (param i32 i32)))
  (import "wasi:sockets/tcp@0.2.0" "[method]tcp-socket.subscribe"
    (func $subscribe (param i32) (result i32)))
  (import "wasi:io/poll@0.2.0" "[method]pollable.block"
    (func $block (param i32)))
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
  (func $refused (param $code i32) (result i32)
    (call $report (i32.or (i32.const 0x100) (i32.load8_u (local.get $code)))))
  (func (export "run") (param i32 i32) (result i32)
    (local $socket i32)
    (call $create (i32.const 0) (i32.const 256))
    (if (i32.load8_u (i32.const 256)) (then (return (call $refused (i32.const 260)))))
    (local.set $socket (i32.load (i32.const 260)))
    ;; ipv4, port 80, 127.0.0.1; the rest belongs to IPv6
    (call $connect
      (local.get $socket) (call $network) (i32.const 0)
      (i32.const 80) (i32.const 127) (i32.const 0) (i32.const 0) (i32.const 1)
      (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)
      (i32.const 256))
    (if (i32.load8_u (i32.const 256)) (then (return (call $refused (i32.const 257)))))
    (call $block (call $subscribe (local.get $socket)))
    (call $finish (local.get $socket) (i32.const 256))
    (if (i32.load8_u (i32.const 256)) (then (return (call $refused (i32.const 260)))))
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
