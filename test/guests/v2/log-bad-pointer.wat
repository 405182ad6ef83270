;; Logs a message from beyond its memory.
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
    (data (i32.const 256) "again"))
  (core instance $mem (instantiate $memory-module))
  (core func $log-lowered
    (canon lower (func $log)
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (core module $main-module
    (import "host" "log" (func $log (param i32 i32 i32 i32 i32)))
    (func (export "run") (param i32 i32) (result i32)
      (call $log (i32.const 1) (i32.const 0x7fffffff) (i32.const 5) (i32.const 0) (i32.const 0))
      (i32.const 32)))
  (core instance $main
    (instantiate $main-module (with "host" (instance (export "log" (func $log-lowered))))))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (export "run" (func $run)))
