# triton: the plan computes with torch instead of a kernel
# verdict: bad plan
# says: candidate.py:



def plan(p):
    import torch

    (x,), (y,) = p.inputs, p.outputs
    y.copy_(torch.sigmoid(x) * x)
