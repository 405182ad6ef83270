;; A WASI command: exports _start instead of the two functions.
(module
  (memory (export "memory") 2)
  (func (export "_start")))
