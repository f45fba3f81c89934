# SPDX-License-Identifier: Apache-2.0
"""Exports called at random shapes: what was judged is right, everything else is refused in words.

    random_shapes.py COUNT FOLDER...

Half of the calls have a shape of the table, with other values and strides; the others change a size, a rank, a dtype or
the way two inputs fit. The last line says how many were wrong, and how many were refused without saying why.
"""
import json
import os
import random
import sys

import torch

sys.dont_write_bytecode = True
WORDS = ("this kernel", "this combination", "tensors are wanted", "is on ")


def load(folder):
    folder = os.path.abspath(folder)
    sys.path.insert(0, os.path.dirname(folder))
    with open(os.path.join(folder, "launches.json")) as file:
        return __import__(os.path.basename(folder)), json.load(file)


def drawn(draw, shape, like):
    """Values as the task draws them, in a tensor of this shape; sometimes not contiguous."""
    t = like.reshape(-1)[torch.randint(0, like.numel(), tuple(shape), device=like.device)]
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.dim() > 1 and draw.random() < 0.3 else t


def changed(draw, shapes):
    """Other shapes than these; perhaps of the same sizes."""
    shapes = [list(s) for s in shapes]
    one = shapes[draw.randrange(len(shapes))]
    kind = draw.choice(["size", "size", "rank", "swap"])
    if kind == "rank" or not one:
        one.insert(draw.randint(0, len(one)), draw.choice([1, 2]))
    elif kind == "swap" and len(set(one)) > 1:
        one.reverse()
    else:
        one[draw.randrange(len(one))] = draw.choice([1, 2, 3, 17, 64, 100, 255, 257, 4096])
    return shapes


def tolerance(want):
    return {torch.float16: 2e-2, torch.bfloat16: 6e-2}.get(want.dtype, 1e-4) * want.double().abs().max().clamp_min(1e-6).item()


def tried(m, new, model, tensors, in_table, count):
    """Adds to `count` what became of one call."""
    try:
        with torch.no_grad():
            got = new(*tensors)
    except (ValueError, TypeError) as err:
        count["refused" if any(w in str(err) for w in WORDS) and not in_table else "unclear"] += 1
        return
    except Exception as err:
        print(f"# {m.__name__} {[list(t.shape) for t in tensors]}: {type(err).__name__}: {err}")
        count["unclear"] += 1
        return
    with torch.no_grad():
        want = model(*tensors)
    right = got.shape == want.shape and (got.double() - want.double()).abs().max().item() <= tolerance(want)
    if not right:
        print(f"# {m.__name__} {[list(t.shape) for t in tensors]} is wrong")
    count["right" if right else "wrong"] += 1


def main():
    total = {"right": 0, "refused": 0, "unclear": 0, "wrong": 0}
    for folder in sys.argv[2:]:
        m, table = load(folder)
        device = "cuda" if table["device"]["kind"] == "cuda" else "cpu"
        draw, count = random.Random(os.path.basename(folder)), dict.fromkeys(total, 0)
        torch.manual_seed(7)
        new, model = (getattr(m, kind)(*m.get_init_inputs()).to(device) for kind in ("ModelNew", "Model"))
        new.load_state_dict(model.state_dict())
        like = [t.to(device) for t in m.get_inputs()]
        # Parameters have one shape each: of the table, what fits them.
        held = [list(t.shape) for t in model.state_dict().values()]
        fitting = [c for c in table["cases"] if [t["shape"] for t in c["inputs"][len(like) :]] == held]
        known = [[t["shape"] for t in c["inputs"][: len(like)]] for c in fitting]
        for k in range(int(sys.argv[1])):
            shapes = draw.choice(known) if k % 2 else changed(draw, draw.choice(known))
            tensors = [drawn(draw, s, t) for s, t in zip(shapes, like)]
            tensors = [t if t.is_floating_point() else t % min(s[0][-1] for s in known) for t in tensors]  # a class of every shape
            if k % 10 == 0:  # as judged, in another type
                tensors[0] = drawn(draw, known[0][0], like[0]).to(torch.float64 if like[0].dtype != torch.float64 else torch.float32)
            in_table = [list(t.shape) for t in tensors] in known and tensors[0].dtype == like[0].dtype
            tried(m, new, model, tensors, in_table, count)
        print(f"{os.path.basename(folder)}: {len(known)} shapes; " + ", ".join(f"{v} {k}" for k, v in count.items()), flush=True)
        total = {k: total[k] + count[k] for k in total}
    print(f"{len(sys.argv) - 2} exports, {sum(total.values())} calls: {total['right']} right, {total['refused']} refused, "
          f"{total['wrong']} wrong, {total['unclear']} unclear")  # fmt: skip
    sys.exit(bool(total["wrong"] or total["unclear"] or not total["right"]))


main()
