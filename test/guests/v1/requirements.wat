;; Asks for a required resource "config", ConfigMap of v1, on every call, and gives no meta.
(module
  (memory (export "memory") 2)
  (data (i32.const 16) "\2a\1b\12\19\0a\06config\12\0f\0a\02v1\12\09ConfigMap")
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0x10_0000_001d)))
