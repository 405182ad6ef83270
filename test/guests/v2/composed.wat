;; Two inner components with a memory each. Outer "run" hands the request on to the inner one, which
;; answers err("grüße 世界") in UTF-16; the string is transcoded on its way through.
(component
  (type $run-type (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
  (component $inner
    (type $answer-type (func (param "request" (list u8)) (result (result (list u8) (error string)))))
    (core module $main-module
      (memory (export "memory") 2)
      (global $heap (mut i32) (i32.const 65536))
      (func (export "realloc")
        (param $old i32) (param $old-size i32) (param i32) (param $size i32) (result i32)
        (local $ptr i32)
        (local.set $ptr (global.get $heap))
        ;; Transcoding grows its buffer as it goes.
        (memory.copy (local.get $ptr) (local.get $old) (local.get $old-size))
        (global.set $heap
          (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
        (local.get $ptr))
      ;; "grüße 世界" in UTF-16, eight code units
      (data (i32.const 128) "g\00r\00\fc\00\df\00e\00 \00\16\4e\4c\75")
      (data (i32.const 32) "\01\00\00\00\80\00\00\00\08\00\00\00")
      (func (export "run") (param i32 i32) (result i32) (i32.const 32)))
    (core instance $main (instantiate $main-module))
    (func (export "answer") (type $answer-type)
      (canon lift (core func $main "run") string-encoding=utf16
        (memory (core memory $main "memory")) (realloc (core func $main "realloc")))))
  (component $outer
    (type $answer-type (func (param "request" (list u8)) (result (result (list u8) (error string)))))
    (import "answer" (func $answer (type $answer-type)))
    (type $run-type
      (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
    (core module $memory-module
      (memory (export "memory") 2)
      (global $heap (mut i32) (i32.const 65536))
      (func (export "realloc")
        (param $old i32) (param $old-size i32) (param i32) (param $size i32) (result i32)
        (local $ptr i32)
        (local.set $ptr (global.get $heap))
        ;; Transcoding grows its buffer as it goes.
        (memory.copy (local.get $ptr) (local.get $old) (local.get $old-size))
        (global.set $heap
          (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
        (local.get $ptr)))
    (core instance $mem (instantiate $memory-module))
    (core func $answer-lowered
      (canon lower (func $answer)
        (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
    (core module $main-module
      (import "inner" "answer" (func $answer (param i32 i32 i32)))
      (func (export "run") (param $ptr i32) (param $len i32) (result i32)
        (call $answer (local.get $ptr) (local.get $len) (i32.const 32))
        (i32.const 32)))
    (core instance $main
      (instantiate $main-module
        (with "inner" (instance (export "answer" (func $answer-lowered))))))
    (func (export "run") (type $run-type)
      (canon lift (core func $main "run")
        (memory (core memory $mem "memory")) (realloc (core func $mem "realloc")))))
  (instance $inside (instantiate $inner))
  (instance $outside (instantiate $outer (with "answer" (func $inside "answer"))))
  (export "run" (func $outside "run")))
