"""Gradients of exports with a backward kernel against float64, on five distributions.

    python3 bench/gpu/gradients.py FOLDER...             exports made with --gradients RUN, or of a backward alone; a table on stdout

Errors are the largest over a gradient's largest value, the worst of all inputs, parameters and distributions, beside PyTorch's own.
"""

import copy
import json
import pathlib
import sys

import torch

DRAWS = {"task": None, "normal": lambda x: x, "wide": lambda x: 30 * x, "small": lambda x: 1e-3 * x, "skewed": torch.exp}
torch.backends.cuda.matmul.allow_tf32 = False
sys.dont_write_bytecode = True


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value.values() if isinstance(value, dict) else value) for t in leaves(v)]


def redrawn(t, kind):
    if not t.is_floating_point() or DRAWS[kind] is None:
        return t
    return DRAWS[kind](torch.randn(t.shape, device=t.device)).to(t.dtype)


def gradients(model, args, upstream, wide=False):
    kind = torch.float64 if wide else None
    args = [a.detach().to(kind).requires_grad_() if a.is_floating_point() else a for a in args]
    model.zero_grad()
    outs = [t for t in leaves(model(*args)) if t.is_floating_point()]
    torch.autograd.backward(outs, [u.to(kind) for u in upstream])
    return [a.grad for a in args if a.is_floating_point()] + [p.grad for p in model.parameters()]


def error(got, truth):
    return max(((g.double() - t).abs().max() / t.abs().max().clamp_min(1e-30)).item() for g, t in zip(got, truth))


def check(folder):
    folder = pathlib.Path(folder).resolve()
    sys.path.insert(0, str(folder.parent))
    m = __import__(folder.name)
    device = "cuda" if json.loads((folder / "launches.json").read_text())["device"]["kind"] == "cuda" else "cpu"
    torch.manual_seed(1)
    reference, ours = (getattr(m, kind)(*m.get_init_inputs()).to(device) for kind in ("Model", "ModelNew"))
    ours.load_state_dict(reference.state_dict())
    worst, theirs, calls = 0.0, 0.0, []
    export = next(v._export for n, v in sys.modules.items() if n.startswith(folder.name + ".") and hasattr(v, "_export"))
    judged = export.gradients.kernel.judged_gradients
    export.gradients.kernel.judged_gradients = lambda *a: calls.append(1) or judged(*a)
    for kind in DRAWS:
        args = [redrawn(a.to(device), kind) for a in m.get_inputs()]
        with torch.no_grad():
            upstream = [torch.randn_like(t) for t in leaves(reference(*args)) if t.is_floating_point()]
        truth = gradients(copy.deepcopy(reference).double(), args, upstream, True)
        worst = max(worst, error(gradients(ours, args, upstream), truth))
        theirs = max(theirs, error(gradients(reference, args, upstream), truth))
    right = "right" if worst <= 4 * theirs + 1e-6 and len(calls) == len(DRAWS) else "WRONG"
    print(f"| {folder.name} | {[list(a.shape) for a in m.get_inputs()]} | {worst:.1e} | {theirs:.1e} | {right} |", flush=True)
    return right == "right"


def main():
    print("| export | inputs | error | PyTorch's | |\n|---|---|---|---|---|")
    found = [check(folder) for folder in sys.argv[1:]]
    print(f"\n{sum(found)} of {len(found)} right")
    sys.exit(not all(found))


main()
