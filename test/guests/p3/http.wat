;; Sends GET https://api.example.com/ through wasi:http of WASI 0.3. Answers 00000000 for a response and
;; 000001xx for a refusal with error code xx; 0f is HTTP-request-denied.
(module
  (import "wasi:http/types@0.3.0" "[constructor]fields"
    (func $fields (result i32)))
  (import "wasi:http/types@0.3.0" "[future-new-1][static]request.new"
    (func $trailers (result i64)))
  (import "wasi:http/types@0.3.0" "[static]request.new"
    (func $request (param i32 i32 i32 i32 i32 i32 i32)))
  (import "wasi:http/types@0.3.0" "[method]request.set-scheme"
    (func $scheme (param i32 i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.3.0" "[method]request.set-authority"
    (func $authority (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/types@0.3.0" "[method]request.set-path-with-query"
    (func $path (param i32 i32 i32 i32) (result i32)))
  (import "wasi:http/client@0.3.0" "send"
    (func $send (param i32 i32)))
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
  (func (export "run") (param i32 i32) (result i32)
    (local $request i32)
    ;; No contents and no options; nobody asks for the trailers.
    (call $request
      (call $fields)
      (i32.const 0) (i32.const 0)
      (i32.wrap_i64 (call $trailers))
      (i32.const 0) (i32.const 0)
      (i32.const 256))
    (local.set $request (i32.load (i32.const 256)))
    ;; some(https), some("api.example.com"), some("/")
    (drop (call $scheme (local.get $request) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0)))
    (drop (call $authority (local.get $request) (i32.const 1) (i32.const 512) (i32.const 15)))
    (drop (call $path (local.get $request) (i32.const 1) (i32.const 527) (i32.const 1)))
    (call $send (local.get $request) (i32.const 256))
    (if (i32.load8_u (i32.const 256))
      (then (return (call $report (i32.or (i32.const 0x100) (i32.load8_u (i32.const 264)))))))
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
