"""Batches of matrix products whose operands lie in any order: permuted, split, sliced, broadcast.

    python3 tests/expert/batches.py OUT_DIR [COUNT [SEED]]

Batch dimensions are letters of an einsum; an operand has some of them, in any order, as an input of its own: two neighbours
may be one dimension there, and some of what is there may be left out. FEW=1: short sums, so that tiles are read once.
"""
import os
import pathlib
import random
import sys

TASK = '''"""Module {number}: batched product, seed {seed}: {words}."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, y{beside}):
{body}
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''
MATRIX = (3, 4, 8, 12, 16, 17, 20, 33, 64, 72)


class Operand:
    """A tensor over `letters`, as one over an input that lies otherwise."""

    def __init__(self, rng, name, letters, sizes):
        self.lines, self.words = [], []
        axes = [[c] for c in letters]
        rng.shuffle(axes)
        if rng.random() < 0.4 and len(axes) > 2:  # two neighbours are one dimension of the input
            at = rng.randrange(len(axes) - 1)
            axes[at : at + 2] = [axes[at] + axes[at + 1]]
            self.words.append("split")
        shape = [self.product(a, sizes) for a in axes]
        ends = list(shape)
        if rng.random() < 0.3:  # more lies there than is read
            at = rng.randrange(len(shape))
            first = rng.choice((0, 1, 4))
            ends[at] = first + shape[at] + rng.choice((0, 3, 4))
            self.lines.append(f"{name} = {name}.narrow({at}, {first}, {shape[at]})")
            self.words.append("sliced")
        if rng.random() < 0.2:  # or one place of a dimension
            at = rng.randrange(len(ends) + 1)
            ends.insert(at, 3)
            self.lines.insert(0, f"{name} = {name}.select({at}, {rng.choice((0, 1, -1))})")
            self.words.append("selected")
        flat = [c for a in axes for c in a]
        if any(len(a) > 1 for a in axes):
            self.lines.append(f"{name} = {name}.reshape({', '.join(str(sizes[c]) for c in flat)})")
        self.shape, self.letters = ends, flat

    @staticmethod
    def product(letters, sizes):
        result = 1
        for c in letters:
            result *= sizes[c]
        return result


def einsum(rng, x, y, result):
    return [f'p = torch.einsum("{"".join(x.letters)},{"".join(y.letters)}->{"".join(result)}", x, y)']


def by_hand(rng, x, y, batch, sizes, m, n, k):
    """permute, expand, reshape, bmm: batch is in one order for both."""
    lines = []
    count = Operand.product(batch, sizes)
    for name, operand, last in (("x", x, m + k), ("y", y, rng.choice((k + n, n + k)))):
        there = [c for c in batch if c in operand.letters]
        order = [operand.letters.index(c) for c in there + list(last)]
        line = f"{name}.permute({', '.join(map(str, order))})"
        for at, c in enumerate(batch):
            if c not in there:
                line += f".unsqueeze({at})"
        full = [sizes[c] for c in list(batch) + list(last)]
        if len(there) < len(batch):
            line += f".expand({', '.join(map(str, full))})"
        line += f".reshape({count}, {full[-2]}, {full[-1]})"
        if name == "y" and last == n + k:
            line += rng.choice((".transpose(1, 2)", ".mT", ".transpose(-1, -2)"))
        lines.append(f"{name} = {line}")
    return lines


def task(number, seed):
    rng = random.Random(f"batches {seed} {number}")
    letters = "bcdh"[: rng.choice((1, 2, 2, 3, 3, 4))]
    sizes = {c: rng.choice((1, 2, 3, 5)) for c in letters}
    sizes |= {c: rng.choice(MATRIX) for c in "mnk"}
    if os.environ.get("FEW"):
        sizes["k"] = rng.choice((4, 8, 16))
    of_x = [c for c in letters if rng.random() < 0.85]
    of_y = [c for c in letters if rng.random() < 0.85 or c not in of_x]
    x = Operand(rng, "x", of_x + ["m", "k"], sizes)
    y = Operand(rng, "y", of_y + ["k", "n"], sizes)
    batch = list(letters)
    rng.shuffle(batch)
    result = batch + ["m", "n"]
    body = x.lines + y.lines
    beside = inputs = ""
    dtype = rng.choice(("", "", "", ".half()"))
    if rng.random() < 0.5:
        if rng.random() < 0.5:
            rng.shuffle(result)
        body += einsum(rng, x, y, result)
        words = "einsum"
    else:
        body += by_hand(rng, x, y, batch, sizes, "m", "n", "k")
        words = "bmm"
        shape = f"{Operand.product(batch, sizes)}, {sizes['m']}, {sizes['n']}"
        if rng.random() < 0.3:
            beside, inputs = ", z", f", torch.randn({shape}){dtype}"
            body.append("p = torch.baddbmm(z, x, y, alpha=0.5)")
            words = "baddbmm"
        else:
            body.append(rng.choice(("p = torch.bmm(x, y)", "p = x @ y")))
        if rng.random() < 0.5:
            body.append(f"p = p.view({', '.join(str(sizes[c]) for c in result)})")
    after = rng.choice(("p", "p", "torch.relu(p)", "p * 0.5 + 1", "torch.sigmoid(p) * p", "p.softmax(-1)", "p.sum(-1)"))
    return TASK.format(number=number, seed=seed, words=f"{words}, {' '.join(x.words + y.words) or 'whole'}, {after}", beside=beside,
                       body="\n".join("        " + line for line in body), result=after,
                       inputs=f"torch.randn({', '.join(map(str, x.shape))}){dtype}, torch.randn({', '.join(map(str, y.shape))}){dtype}{inputs}")


if __name__ == "__main__":
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, count, seed = pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["40"])[0]), int((sys.argv[3:4] or ["1"])[0])
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"task{number:03d}.py").write_text(task(number, seed))
