"""Writes random tasks of matrix products: shapes from 1 to 10,000 (not all tiny), transposes, batches, broadcasts, epilogues, dtypes.

    python3 bench/gemm_tasks.py OUT_DIR COUNT [SEED]
"""
import math
import os
import random
import sys

EPILOGUES = [
    ("{c}", None),
    ("torch.relu({c})", None),
    ("torch.nn.functional.gelu({c})", None),
    ("torch.sigmoid({c}) * 0.5", None),
    ("{c} + bias", "(N,)"),
    ("torch.relu({c} + bias)", "(N,)"),
    ("{c} + rest", "OUT"),
    ("torch.tanh({c} * 0.125) + rest", "OUT"),
    ("{c} * column", "(M, 1)"),
]
TASK = '''"""A random product: {title}."""
import torch
import torch.nn as nn

{sizes}


class Model(nn.Module):
    def forward(self, {names}):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def side(rng):
    size = round(math.exp(rng.uniform(0, math.log(10000))))
    return size + 1 if size % 2 == 0 and rng.random() < 0.4 else size


def sizes_of(rng):
    while True:
        m, n, k = side(rng), side(rng), side(rng)
        batch = rng.choice([0, 0, 0, 0, 1, 2, 3, 7, 16, 33])
        if max(m, n, k) < 64:
            continue
        if m * n * k * max(batch, 1) <= 4e11 and max(m * k, k * n, m * n) * max(batch, 1) <= 6e7:
            return m, n, k, batch


def task(rng):
    m, n, k, batch = sizes_of(rng)
    dtype = rng.choice(["float32"] * 4 + ["float16", "bfloat16"])
    # A matrix times a batch is left out: some versions of torch fold it through a copy no recipe reads.
    a_batched = batch
    b_batched = batch and rng.random() < 0.7
    shapes = [["M", "K"], ["K", "N"]]
    names = ["A", "B"]
    terms = []
    for i, batched in enumerate((a_batched, b_batched)):
        text = names[i]
        if rng.random() < 0.35:
            shapes[i].reverse()
            text += ".transpose(-1, -2)"
        if batched:
            shapes[i].insert(0, "L")
        terms.append(text)
    out = (["L"] if batch else []) + ["M", "N"]
    body, extra = rng.choice(EPILOGUES)
    names_all, inputs = list(names), [f"torch.randn({', '.join(s)}, dtype=torch.{dtype})" for s in shapes]
    if extra:
        shape = f"({', '.join(out)})" if extra == "OUT" else extra
        names_all.append(next(x for x in ("bias", "rest", "column") if x in body))
        inputs.append(f"torch.randn({shape}, dtype=torch.{dtype})")
    sizes = f"M = {m}\nN = {n}\nK = {k}" + (f"\nL = {batch}" if batch else "")
    return TASK.format(
        title=f"{dtype}, {'x'.join(map(str, ([batch] if batch else []) + [m, k, n]))}",
        sizes=sizes,
        names=", ".join(names_all),
        body=body.format(c=f"torch.matmul({terms[0]}, {terms[1]})"),
        inputs=", ".join(inputs),
    )


def main():
    out, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    os.makedirs(out, exist_ok=True)
    for i in range(count):
        with open(os.path.join(out, f"product_{i:03}.py"), "w") as file:
            file.write(task(rng))


main()
