# cutedsl: the plan computes on the host instead of a kernel
# verdict: bad plan|compile error
# says: candidate.py:

import cutlass.cute as cute


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    y[0, 0] = x[0, 0] * cute.math.exp(x[0, 0])
