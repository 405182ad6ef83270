;; Honest work: about 300 ms of arithmetic, then an empty response.
(module
  (memory (export "memory") 2)
  (func (export "wasmfn_alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "wasmfn_run") (param i32 i32) (result i64)
    (local $i i64) (local $x i64)
    (loop $next
      (local.set $x
        (i64.add
          (i64.mul (local.get $x) (i64.const 6364136223846793005))
          (i64.const 1442695040888963407)))
      (br_if $next
        (i64.lt_u
          (local.tee $i (i64.add (local.get $i) (i64.const 1)))
          (i64.const 200000000))))
    ;; Never true, but the compiler cannot know: keeps the loop alive.
    (if (i64.eq (local.get $x) (i64.const 1)) (then (unreachable)))
    (i64.const 0)))
