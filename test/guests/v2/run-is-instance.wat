;; Exports run as an instance.
(component
  (instance $i)
  (export "run" (instance $i)))
