# triton: a plan without a launch
# verdict: bad plan
# says: launches no kernel



def plan(p):
    return p.outputs[0].zero_()
