# SPDX-License-Identifier: Apache-2.0
"""An export as a citizen of torch 2.4 and later: opcheck, torch.compile(fullgraph), torch.export. Called with the folder of an export of two.py."""
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
m = __import__(os.path.basename(os.path.abspath(sys.argv[1])))

model, new = m.Model(1000), m.ModelNew(1000)
new.load_state_dict(model.state_dict())
pair = m.get_inputs()[0]
args = tuple(t.detach().requires_grad_() for t in [*pair, new.inner.weight])
print("opcheck", *sorted(set(torch.library.opcheck(m.operator, args).values())))

leaves = [t.detach().clone().requires_grad_() for t in pair]
whole = torch.compile(lambda p: new(p)["sum"] * 2 + new(p)["difference"], fullgraph=True, backend="aot_eager")
want = model(leaves)
made = whole(leaves)
print("compiled", torch.allclose(made, want["sum"] * 2 + want["difference"], atol=1e-5))
grads = torch.autograd.grad(made.sum(), [*leaves, new.inner.weight])
wanted = torch.autograd.grad((want["sum"] * 2 + want["difference"]).sum(), [*leaves, model.inner.weight])
print("compiled-gradients", all(torch.allclose(a, b, atol=1e-5) for a, b in zip(grads, wanted)))

program = torch.export.export(new, (pair,))
got = program.module()(pair)
print("exported", all(torch.allclose(got[k], want[k], atol=1e-5) for k in want) and m.operator in {n.target for n in program.graph.nodes})
