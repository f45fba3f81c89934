# SPDX-License-Identifier: Apache-2.0
"""Uses of an export of doubled.py that it was not made for. Each is right or refused in words; one line per fact.

    hostile.py FOLDER
"""
import copy
import io
import os
import pickle
import shutil
import sys
import warnings

import torch
import torch.autograd.forward_ad as forward_ad

sys.dont_write_bytecode = True
warnings.simplefilter("ignore")
folder = os.path.abspath(sys.argv[1])
sys.path.insert(0, os.path.dirname(folder))
m = __import__(os.path.basename(folder))
new, model, x = m.ModelNew(), m.Model(), m.get_inputs()[0]


def right(of=new, given=x):
    return "right" if torch.allclose(of(given), model(given), atol=1e-6) else "WRONG"


def told(name, act):
    try:
        print(name, act())
    except Exception as err:
        print(name, type(err).__name__, " ".join(str(err).split())[:300])


def saved():
    file = io.BytesIO()
    torch.save(new, file)
    file.seek(0)
    return right(torch.load(file, **({"weights_only": False} if hasattr(torch, "compile") else {})))


def tangent(of):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(of(forward_ad.make_dual(x, torch.ones_like(x)))).tangent


def loaded(change):
    """A copy of the folder in another place, changed; is it imported?"""
    place = os.path.join(os.path.dirname(folder), f"other{loaded.count}")
    loaded.count += 1
    shutil.copytree(folder, place)
    change(place)
    return __import__(os.path.basename(place))


loaded.count = 0


def appended(name):
    def change(place):
        with open(os.path.join(place, name), "a", encoding="utf-8") as file:
            file.write(" ")

    return change


told("pickled", lambda: right(pickle.loads(pickle.dumps(new))))
told("saved", saved)
told("copied", lambda: right(copy.deepcopy(new)))
told("traced", lambda: right(torch.jit.trace(new, (x,)), 2 * x))
told("expanded", lambda: right(new, torch.ones(1).expand_as(x)))
told("negative", lambda: right(new, torch._neg_view(x)))
told("tangent", lambda: "right" if torch.equal(tangent(new), tangent(model)) else "WRONG")
told("tangent-operator", lambda: tangent(m.operator))
if hasattr(torch, "func"):
    told("jvp", lambda: "right" if torch.equal(*(torch.func.jvp(f, (x,), (x,))[1] for f in (new, model))) else "WRONG")
    told("grad", lambda: "right" if torch.equal(*(torch.func.grad(lambda a, f=f: f(a).sum())(x) for f in (new, model))) else "WRONG")
    told("vmap", lambda: "right" if torch.allclose(torch.vmap(new)(x.expand(2, -1)), model(x).expand(2, -1), atol=1e-6) else "WRONG")
told("sparse", lambda: new(x.to_sparse()))
told("nothing", lambda: new(None))
told("moved", lambda: right(loaded(lambda place: None).ModelNew()))
told("changed-table", lambda: loaded(appended("launches.json")))
told("no-record", lambda: loaded(lambda place: os.remove(os.path.join(place, "record.json"))))
os.environ.pop("CUTEGEN_PROGRAM")
os.environ["PATH"] = ""
told("no-cutegen", lambda: new(x))
