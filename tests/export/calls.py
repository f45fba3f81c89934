# SPDX-License-Identifier: Apache-2.0
"""Calls of an export that differ in something else than tensors: right or refused, never the kernel's answer to another call.

    calls.py FOLDER        the export of called.py
    calls.py ONE TWO       two exports of one name: their gradients are their own
"""
import copy
import os
import pickle
import sys
import warnings

import torch

sys.dont_write_bytecode = True
warnings.simplefilter("ignore")


def load(folder):
    folder = os.path.abspath(folder)
    for name in [n for n in sys.modules if n.partition(".")[0] == os.path.basename(folder)]:
        del sys.modules[name]  # another one of that name
    sys.path.insert(0, os.path.dirname(folder))
    return __import__(os.path.basename(folder))


def told(name, act):
    try:
        print(name, act())
    except Exception as err:
        print(name, type(err).__name__, " ".join(str(err).split())[:300])


def calls(m):
    new, model = m.ModelNew(), m.Model()
    (pair, maybe), x = m.get_inputs(), torch.ones(1000)
    turned = {"b": pair["b"], "a": pair["a"]}

    def right(*args, of=None, **more):
        return "right" if torch.allclose((of or new)(*args, **more), model(*args, **more), atol=1e-6) else "WRONG"

    told("as-judged", lambda: right(pair, maybe))
    told("keywords", lambda: right(maybe=maybe, pair=pair, factor=2.0, flip=False, mode="double"))
    told("turned", lambda: right(turned, maybe))
    told("names", lambda: right({"a": pair["a"], "c": pair["b"]}, maybe))
    told("surplus", lambda: right({**pair, "c": None}, maybe))
    told("text", lambda: right(pair, maybe, "triple"))
    told("number", lambda: right(pair, maybe, factor=3.0))
    told("flag", lambda: right(pair, maybe, flip=True))
    told("whole", lambda: right(pair, maybe, factor=2))
    told("list", lambda: right(pair, [None, 1]))
    told("longer", lambda: right(pair, [1, None, None]))
    told("tensor", lambda: right(pair, [1, x]))
    new.shift = model.shift = 3.0
    told("attribute", lambda: right(pair, maybe))
    told("its-copy", lambda: right(pair, maybe, of=copy.deepcopy(new)))
    told("its-pickle", lambda: right(pair, maybe, of=pickle.loads(pickle.dumps(new))))
    new.shift = model.shift = 1.0
    told("back", lambda: right(pair, maybe))
    new.more = 1
    told("more", lambda: new(pair, maybe))
    told("made", lambda: m.ModelNew(then=torch.abs))
    for name, change in CHANGES.items():
        told(f"changed-{name}", lambda change=change: changed(m, change, pair, maybe))
    new = m.ModelNew()
    new._of_another_library = 1
    told("private", lambda: right(pair, maybe, of=new))


def without_weight(model):
    model.part.weight = None


def normalized(model):
    torch.nn.utils.weight_norm(model.part)
    model.part.weight_g.data.mul_(2)


CHANGES = {
    "function": lambda model: setattr(model, "then", torch.abs),
    "part": lambda model: setattr(model, "part", torch.nn.ReLU()),
    "object": lambda model: setattr(model.config["deep"], "scale", 3.0),
    "list": lambda model: model.config["sizes"][1].__setitem__(0, 7),
    "private": lambda model: setattr(model, "_hidden", 3.0),
    "hook": lambda model: model.part.register_forward_hook(lambda *given: given[-1] * 2),
    "pre-hook": lambda model: model.part.register_forward_pre_hook(lambda _, given: (given[0] * 2,)),
    "norm": normalized,
    "forward": lambda model: setattr(model.part, "forward", torch.abs),
    "weight": without_weight,
}


def changed(m, change, *args):
    """After a first call, of both; Model computes something else then."""
    new, model = m.ModelNew(), m.Model()
    new(*args)
    change(new)
    change(model)
    try:
        want = model(*args)
    except TypeError:  # without a weight
        want = torch.full((1000,), torch.nan)
    got = new(*args)
    return "right" if torch.allclose(got, want, atol=1e-6) else "WRONG"


def names(one, two):
    for m in (one, two):
        x = torch.ones(1000, requires_grad=True)
        m.ModelNew()(x).sum().backward()
        got = x.grad
        x.grad = None
        m.Model()(x).sum().backward()
        print("gradient", "right" if torch.equal(got, x.grad) else "WRONG", got[0].item())


folders = [load(folder) for folder in sys.argv[1:]]
calls(*folders) if len(folders) == 1 else names(*folders)
