;; Fills 1 MiB of memory and a table with markers and leaves them there; see scanner.
(module
  (table $t 1000 funcref)
  (global $mark (mut i32) (i32.const 0))
  (memory (export "memory") 17)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func $marker (result i32) (i32.const 0x5ec2e7))
  (elem declare func $marker)
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (memory.fill (i32.const 65536) (i32.const 0xa5) (i32.const 1048576))
    (table.fill $t (i32.const 0) (ref.func $marker) (i32.const 1000))
    (global.set $mark (i32.const 0x5ec2e7))
    (i64.const 0)))
