;; Sends GET https://api.example.com/ through wasi:http. Answers 00000000 for a response and 000001xx
;; for a refusal with error code xx; 0f is HTTP-request-denied.
(module
  (import "wasi:http/types@0.2.0" "[constructor]fields"
    (func $fields (result i32)))
  (import "wasi:http/types@0.2.0" "[constructor]outgoing-request"
    (func $request (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-scheme"
    (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-authority"
    (func $authority (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]outgoing-request.set-path-with-query"
    (func $path (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]future-incoming-response.subscribe"
    (func $subscribe (param i32) (result i32)))
  (import "wasi:http/types@0.2.0" "[method]future-incoming-response.get"
    (func $get (param i32 i32)))
  (import "wasi:http/outgoing-handler@0.2.0" "handle"
    (func $handle (param i32 i32 i32 i32)))
  (import "wasi:io/poll@0.2.0" "[method]pollable.block"
    (func $block (param i32)))
  (memory (export "memory") 2)
  ;; ok(64, 14): one result whose message is eight characters.
  (data (i32.const 32) "\00\00\00\00\40\00\00\00\0e\00\00\00")
  (data (i32.const 64) "\1a\0c\08\03\12\08")
  (data (i32.const 512) "api.example.com/")
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
    (local $request i32) (local $future i32)
    (local.set $request (call $request (call $fields)))
    ;; some(https), some("api.example.com"), some("/")
    (drop (call $scheme (local.get $request) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0)))
    (drop (call $authority (local.get $request) (i32.const 1) (i32.const 512) (i32.const 15)))
    (drop (call $path (local.get $request) (i32.const 1) (i32.const 527) (i32.const 1)))
    (call $handle (local.get $request) (i32.const 0) (i32.const 0) (i32.const 256))
    (if (i32.load8_u (i32.const 256)) (then (return (call $refused (i32.const 264)))))
    (local.set $future (i32.load (i32.const 264)))
    (call $block (call $subscribe (local.get $future)))
    (call $get (local.get $future) (i32.const 256))
    ;; some(ok(...)) at 256 and 264; the answer proper at 272
    (if (i32.eqz (i32.load8_u (i32.const 256))) (then (unreachable)))
    (if (i32.load8_u (i32.const 264)) (then (unreachable)))
    (if (i32.load8_u (i32.const 272)) (then (return (call $refused (i32.const 280)))))
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
