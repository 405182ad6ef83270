;; Its run takes and returns a string.
(component
  (type $run-type (func (param "request" string) (result string)))
  (core module $main-module
    (memory (export "memory") 2)
    (global $heap (mut i32) (i32.const 65536))
    (func (export "realloc") (param i32 i32 i32) (param $size i32) (result i32)
      (local $ptr i32)
      (local.set $ptr (global.get $heap))
      (global.set $heap
        (i32.and (i32.add (i32.add (local.get $ptr) (local.get $size)) (i32.const 7)) (i32.const -8)))
      (local.get $ptr))
    (func (export "run") (param i32 i32) (result i32) (i32.const 32)))
  (core instance $main (instantiate $main-module))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
  (export "run" (func $run)))
