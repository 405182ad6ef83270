;; A valid module that exports nothing.
(module
  (func (unreachable)))
