;; Imports an interface nobody provides.
(component
  (import "evil:host/world-domination@1.0.0" (instance (export "start" (func))))
  (type $run-type (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
  (core module $main-module
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $ptr i32)
      (local.set $ptr (global.get $heap))
      (global.set $heap
        (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
      (local.get $ptr))
    (data (i32.const 128) "\1a\0f\08\03\12\0bhello world")
    (data (i32.const 32) "\00\00\00\00\80\00\00\00\11\00\00\00") ;; ok(128, 17)
    (func (export "run") (param i32 i32) (result i32) (i32.const 32)))
  (core instance $main (instantiate $main-module))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
  (export "run" (func $run)))
