;; Answers with how often _initialize ran before wasmfn_alloc and wasmfn_run: must be 1, in each run.
(module
  (memory (export "memory") 2)
  (global $calls (mut i32) (i32.const 0))
  (global $early (mut i32) (i32.const 0))
  (data (i32.const 16) "\1a\05\08\03\12\010")
  (func (export "_initialize")
    (global.set $calls (i32.add (global.get $calls) (i32.const 1))))
  (func (export "wasmfn_alloc") (param i32) (result i32)
    (if (i32.eqz (global.get $calls)) (then (unreachable)))
    (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (i32.store8 (i32.const 22) (i32.add (i32.const 48) (global.get $calls)))
    (i64.const 0x10_0000_0007)))
