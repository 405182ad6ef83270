;; Logs one line of each level, the info line with fields, and answers ok with no bytes.
(component
  (type $level' (enum "debug" "info" "warn" "error"))
  (import "log-level" (type $level (eq $level')))
  (import "log"
    (func $log (param "level" $level) (param "msg" string) (param "kv" (list (tuple string string)))))
  (type $run-type (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
  (core module $memory-module
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $ptr i32)
      (local.set $ptr (global.get $heap))
      (global.set $heap
        (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
      (local.get $ptr))
    (data (i32.const 256) "debug rendered warn error objects 3")
    ;; one pair: (282, 7), (290, 1)
    (data (i32.const 320) "\1a\01\00\00\07\00\00\00\22\01\00\00\01\00\00\00"))
  (core instance $mem (instantiate $memory-module))
  (core func $log-lowered
    (canon lower (func $log)
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (core module $main-module
    (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
    (func (export "run") (param i32 i32) (result i32)
      (call $log (i32.const 0) (i32.const 256) (i32.const 5) (i32.const 0) (i32.const 0))
      (call $log (i32.const 1) (i32.const 262) (i32.const 8) (i32.const 320) (i32.const 1))
      (call $log (i32.const 2) (i32.const 271) (i32.const 4) (i32.const 0) (i32.const 0))
      (call $log (i32.const 3) (i32.const 276) (i32.const 5) (i32.const 0) (i32.const 0))
      (i32.const 32)))
  (core instance $main
    (instantiate $main-module (with "host" (instance (export "log" (func $log-lowered))))))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (export "run" (func $run)))
