;; Loops for ever in realloc, which the host calls to pass the request.
(component
  (type $run-type (func async (param "request" (list u8)) (result (result (list u8) (error string)))))
  (core module $main-module
    (memory (export "memory") 2)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32)
      (loop $again (br $again))
      (unreachable))
    (func (export "run") (param i32 i32) (result i32) (i32.const 32)))
  (core instance $main (instantiate $main-module))
  (func $run (type $run-type)
    (canon lift (core func $main "run")
      (memory (core memory $main "memory")) (realloc (core func $main "realloc"))))
  (export "run" (func $run)))
