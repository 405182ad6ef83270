;; Grows its memory in steps of 1 MiB until refused and writes to each page it gets, for ever.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $at i32)
    (loop $again
      (if (i32.ne (memory.grow (i32.const 16)) (i32.const -1))
        (then
          (local.set $at (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1048576)))
          (memory.fill (local.get $at) (i32.const 171) (i32.const 1048576))))
      (br $again))
    (unreachable)))
