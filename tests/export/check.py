# SPDX-License-Identifier: Apache-2.0
"""What an export of two.py does on a CPU, through simt: called by export_test.sh with the folder. Prints one word per fact."""
import copy
import os
import pickle
import random
import sys
import time

began = time.process_time()
import torch  # noqa: E402

of_torch = time.process_time() - began
sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[1])))
began = time.process_time()
m = __import__(os.path.basename(os.path.abspath(sys.argv[1])))
spent = time.process_time() - began


def same(got, want):
    return list(got) == list(want) and all(torch.allclose(got[k], want[k], atol=1e-6) for k in want)


def said(call, *words):
    """The kind of error, if its text has all these words."""
    try:
        call()
        return "taken"
    except Exception as err:
        text = str(err)
        return type(err).__name__ if all(w in text for w in words) else f"{type(err).__name__}: {text}"


def grads(model, pair, **more):
    leaves = [t.detach().clone().requires_grad_() for t in pair]
    out = model(leaves, **more)
    ((out["sum"] ** 2).sum() + 3 * out["difference"].sum()).backward()
    return [t.grad for t in leaves] + [p.grad for p in model.parameters()]


def results(model, new, pair):
    want = model(pair)
    if same(new(pair), want):
        print("same-result")
    if same(new([t.repeat_interleave(2)[::2] for t in pair]), want):
        print("non-contiguous-copied")
    if same(new([torch.cat([t[:1], t])[1:] for t in pair]), want):
        print("misaligned-copied")
    empty = [torch.empty(0, 1000)] * 2
    if same(new(empty), model(empty)) and list(new(empty)["sum"].shape) == [0, 1000]:
        print("empty-batch")
    with torch.no_grad():
        if not new(pair)["sum"].requires_grad:
            print("no-grad")
    twin = copy.deepcopy(new)
    twin.load_state_dict(pickle.loads(pickle.dumps(new.state_dict())))
    if same(twin(pair), want):
        print("deepcopy-state-dict")


def refusals(model, new, pair):
    print("shape", said(lambda: new([t[:7] for t in pair]), "pair.0 of shape [1000]", "got [7]"))
    print("rank", said(lambda: new([t.view(10, 100) for t in pair]), "with 1 dimensions", "[10, 100]"))
    print("dtype", said(lambda: new([pair[0].double(), pair[1]]), "torch.float32", "got torch.float64"))
    print("numpy", said(lambda: new([t.numpy() for t in pair]), "numpy.ndarray", "torch.from_numpy"))
    print("scalar", said(lambda: new(pair, alpha=2.0), "scalar arguments [0.5]", "[2.0]"))
    print("half", said(lambda: copy.deepcopy(new).half()(pair), "inner.weight as torch.float32", ".half()"))
    print("constructor", said(lambda: m.ModelNew(m.two_new._reference.N, "other"), "positional"))
    print("operator", said(lambda: m.operator(pair[0][:5], pair[1], model.inner.weight), "[1000]"))
    print("keyword", said(lambda: new(pair, beta=1), "beta"))
    draw = random.Random(7)
    wrong = 0
    for _ in range(50):
        shape = [draw.choice([1, 3, 64, 999, 1001, 4096]) for _ in range(draw.randint(1, 3))]
        wrong += said(lambda: new([torch.zeros(shape)] * 2), "this kernel") != "ValueError"
    print(f"random-shapes {wrong} of 50 taken or unclear")


def gradients(model, new, pair):
    for one, two in zip(grads(model, pair), grads(new, pair)):
        if not torch.allclose(one, two, atol=1e-5):
            print("wrong-gradient")
    print("gradients-of-the-reference")
    x = pair[0].detach().clone().requires_grad_()
    first, second = [], []
    for model_, to in ((model, first), (new, second)):
        (g,) = torch.autograd.grad((model_([x, pair[1]])["sum"] ** 3).sum(), x, create_graph=True)
        to.append(torch.autograd.grad(g.sum(), x)[0])
    print("second-derivatives" if torch.allclose(first[0], second[0], atol=1e-3) else "wrong-second-derivatives")


def main():
    print("import-cheaper-than-torch" if spent < of_torch else f"import takes {spent} s, that of torch {of_torch} s")
    model, new = m.Model(1000), m.ModelNew(1000)
    new.load_state_dict(model.state_dict())
    pair = m.get_inputs()[0]
    if "none" in sys.argv:
        print("none", said(lambda: grads(new, pair), "requires grad", "--gradients reference"))
        return
    if "fallback" in sys.argv:
        import warnings

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            short = [t[:1] for t in pair]
            print("left-to-model" if same(new(short), model(short)) and same(new(short), model(short)) else "wrong")
            print(f"told {sum('left to Model' in str(w.message) for w in told)}")
        return
    results(model, new, pair)
    refusals(model, new, pair)
    gradients(model, new, pair)


main()
