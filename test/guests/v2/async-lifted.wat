;; run is lifted asynchronously with a callback: yields once, then returns its task.
(component
  (type $run-type (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
  ;; The memory lives in a module of its own: task.return needs it before the main module exists.
  (core module $memory-module
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $ptr i32)
      (local.set $ptr (global.get $heap))
      (global.set $heap
        (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
      (local.get $ptr))
    (data (i32.const 128) "\1a\0f\08\03\12\0bhello world"))
  (core instance $mem (instantiate $memory-module))
  (core func $return
    (canon task.return (result (result (list u8) (error string)))
      (memory (core memory $mem "memory"))))
  (core func $set-new (canon waitable-set.new))
  (core module $main-module
    (import "host" "return" (func $return (param i32 i32 i32)))
    (import "host" "set-new" (func $set-new (result i32)))
    ;; 1 = yield
    (func (export "run") (param i32 i32) (result i32) (i32.const 1))
    (func (export "callback") (param i32 i32 i32) (result i32)
      (call $return (i32.const 0) (i32.const 128) (i32.const 17))
      (i32.const 0)))
  (core instance $main
    (instantiate $main-module
      (with "host"
        (instance (export "return" (func $return)) (export "set-new" (func $set-new))))))
  (func $run (type $run-type)
    (canon lift (core func $main "run") async (callback (core func $main "callback"))
      (memory (core memory $mem "memory")) (realloc (core func $mem "realloc"))))
  (export "run" (func $run)))
