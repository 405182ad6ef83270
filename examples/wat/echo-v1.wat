;; The smallest useful module of guest ABI v1, written by hand to show the contract.
;;
;; It is a pipeline step that changes nothing: `desired` and `context` of the request come back as
;; they were, byte for byte. It leaves out `meta`; the runtime adds the tag and a TTL to a response
;; that has none.
;;
;; The host calls, in this order and in a fresh instance every time:
;;   1. wasmfn_alloc(size) -> address          room for the request
;;   2. wasmfn_run(address, size) -> i64       address << 32 | size of the response
;;
;; How it works: both messages consist of fields, and a field is a tag, a length and that many
;; bytes. Going from request to response only the tags differ:
;;
;;               request        response
;;   desired     3 -> tag 0x1a  2 -> tag 0x12
;;   context     5 -> tag 0x2a  4 -> tag 0x22
;;
;; (A tag is field number << 3 | wire type; wire type 2 is "length and bytes".) So the response is
;; built by copying these two fields with another tag and skipping all others.
(module
  (memory (export "memory") 1)

  ;; Where free memory starts. It only grows: the instance is dropped after one run.
  (global $free (mut i32) (i32.const 1024))

  ;; Where reading has got to, and where the request ends.
  (global $at (mut i32) (i32.const 0))
  (global $end (mut i32) (i32.const 0))

  ;; Reserves memory and returns its address; traps when there is none left.
  (func $alloc (export "wasmfn_alloc") (param $size i32) (result i32)
    (local $address i32)
    (local $missing i64)
    (local.set $address (global.get $free))
    ;; In 64 bits, so that a huge size cannot wrap around.
    (local.set $missing
      (i64.sub
        (i64.add (i64.extend_i32_u (local.get $address)) (i64.extend_i32_u (local.get $size)))
        (i64.shl (i64.extend_i32_u (memory.size)) (i64.const 16))))
    (if (i64.gt_s (local.get $missing) (i64.const 0))
      (then
        (if (i32.eq
              (memory.grow
                (i32.wrap_i64
                  (i64.shr_u (i64.add (local.get $missing) (i64.const 65535)) (i64.const 16))))
              (i32.const -1))
          (then (unreachable)))))
    (global.set $free (i32.add (local.get $address) (local.get $size)))
    (local.get $address))

  ;; Reads a varint: 7 bits a byte, lowest first, the top bit set on all but the last. Traps when it
  ;; runs past the request or takes more than 5 bytes, which no tag or length here needs.
  (func $varint (result i32)
    (local $value i32)
    (local $shift i32)
    (local $byte i32)
    (loop $next
      (if (i32.or
            (i32.ge_u (global.get $at) (global.get $end))
            (i32.gt_u (local.get $shift) (i32.const 28)))
        (then (unreachable)))
      (local.set $byte (i32.load8_u (global.get $at)))
      (global.set $at (i32.add (global.get $at) (i32.const 1)))
      (local.set $value
        (i32.or
          (local.get $value)
          (i32.shl (i32.and (local.get $byte) (i32.const 0x7f)) (local.get $shift))))
      (local.set $shift (i32.add (local.get $shift) (i32.const 7)))
      (br_if $next (i32.ge_u (local.get $byte) (i32.const 0x80))))
    (local.get $value))

  (func (export "wasmfn_run") (param $request i32) (param $size i32) (result i64)
    (local $tag i32)
    (local $length_at i32) ;; where a field's length starts
    (local $length i32)
    (local $copied i32)    ;; bytes of a field from its length on
    (local $response i32)  ;; where the response starts
    (local $out i32)       ;; where it ends so far

    (global.set $at (local.get $request))
    (global.set $end (i32.add (local.get $request) (local.get $size)))
    ;; The response is never longer than the request.
    (local.set $response (call $alloc (local.get $size)))
    (local.set $out (local.get $response))

    (block $done
      (loop $next_field
        (br_if $done (i32.ge_u (global.get $at) (global.get $end)))

        ;; Every field of a request has wire type 2. Trap on anything else rather than guess.
        (local.set $tag (call $varint))
        (if (i32.ne (i32.and (local.get $tag) (i32.const 7)) (i32.const 2))
          (then (unreachable)))

        ;; Step over the content, which must lie inside the request.
        (local.set $length_at (global.get $at))
        (local.set $length (call $varint))
        (if (i32.gt_u (local.get $length) (i32.sub (global.get $end) (global.get $at)))
          (then (unreachable)))
        (global.set $at (i32.add (global.get $at) (local.get $length)))

        ;; desired and context go on under their new tag, everything else is skipped.
        (block $skip
          (block $copy
            (if (i32.eq (local.get $tag) (i32.const 0x1a))
              (then (local.set $tag (i32.const 0x12)) (br $copy)))
            (if (i32.eq (local.get $tag) (i32.const 0x2a))
              (then (local.set $tag (i32.const 0x22)) (br $copy)))
            (br $skip))
          (local.set $copied (i32.sub (global.get $at) (local.get $length_at)))
          (i32.store8 (local.get $out) (local.get $tag))
          (local.set $out (i32.add (local.get $out) (i32.const 1)))
          (memory.copy (local.get $out) (local.get $length_at) (local.get $copied))
          (local.set $out (i32.add (local.get $out) (local.get $copied))))
        (br $next_field)))

    ;; address << 32 | size.
    (i64.or
      (i64.shl (i64.extend_i32_u (local.get $response)) (i64.const 32))
      (i64.extend_i32_u (i32.sub (local.get $out) (local.get $response))))))
