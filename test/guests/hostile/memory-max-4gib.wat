;; Declares 2 pages and a maximum of 4 GiB, as many toolchains do: a good module.
(module
  (memory (export "memory") 2 65536)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i64.const 0)))
