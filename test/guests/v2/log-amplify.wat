;; Logs with 4,000 key-value pairs that all lie over the same 60 KB: half a gigabyte for the host to copy.
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
    (import "mem" "memory" (memory 2))
    (func (export "run") (param i32 i32) (result i32)
      (local $at i32)
      (memory.fill (i32.const 1024) (i32.const 120) (i32.const 60000))
      ;; pairs of 16 bytes from 65,536 on: (1024, 60000), (1024, 60000)
      (local.set $at (i32.const 65536))
      (loop $next
        (i64.store (local.get $at) (i64.const 0xea60_0000_0400))
        (br_if $next
          (i32.lt_u
            (local.tee $at (i32.add (local.get $at) (i32.const 8)))
            (i32.const 129536))))
      (loop $again
        (call $log (i32.const 1) (i32.const 256) (i32.const 5) (i32.const 65536) (i32.const 4000))
        (br $again))
      (unreachable)))
  (core instance $main
    (instantiate $main-module
      (with "host" (instance (export "log" (func $log-lowered))))
      (with "mem" (instance $mem))))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (export "run" (func $run)))
