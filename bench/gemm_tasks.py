"""Writes random tasks of matrix products: shapes from 1 to 10,000 (not all tiny), odd sizes, transposes, batches,
broadcasts, prologues, epilogues, several products, dtypes.

    python3 bench/gemm_tasks.py OUT_DIR COUNT [SEED]
"""
import math
import os
import random
import sys

# What becomes of the product {c}, and the shape of the tensor beside it.
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
PROLOGUES = ["torch.relu({x})", "({x} * 0.25)", "torch.tanh({x})"]
ACTIVATIONS = ["torch.relu", "torch.nn.functional.gelu", "torch.tanh", "torch.nn.functional.silu"]
TASK = '''"""A random product: {title}."""
import torch
import torch.nn as nn

{sizes}


class Model(nn.Module):
{init}    def forward(self, {names}):
        return {body}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''


def side(rng):
    size = round(math.exp(rng.uniform(0, math.log(10000))))
    return size + 1 if size % 2 == 0 and rng.random() < 0.4 else size


def sizes_of(rng, batches):
    while True:
        m, n, k = side(rng), side(rng), side(rng)
        batch = rng.choice(batches)
        if max(m, n, k) < 64:
            continue
        if m * n * k * max(batch, 1) <= 4e11 and max(m * k, k * n, m * n) * max(batch, 1) <= 6e7:
            return m, n, k, batch


def write(title, sizes, names, body, inputs, init=""):
    text = "\n".join(f"{name} = {value}" for name, value in sizes.items())
    return TASK.format(title=title, sizes=text, names=", ".join(names), body=body, inputs=", ".join(inputs), init=init)


def tensor(shape, dtype):
    return f"torch.randn({', '.join(shape)}, dtype=torch.{dtype})"


def one_product(rng, dtype):
    """A product of two operands, each maybe transposed, batched or changed before, with what follows it."""
    m, n, k, batch = sizes_of(rng, [0, 0, 0, 0, 1, 2, 3, 7, 16, 33])
    which = rng.choice(["both", "both", "left", "right"]) if batch else ""
    heads = batch and rng.random() < 0.3  # two dimensions of products
    sizes = {"M": m, "N": n, "K": k}
    lead = []
    if batch:
        sizes["L"] = batch
        lead = ["L"]
    if heads:
        sizes["H"] = 2
        lead = ["L", "H"]
    terms, inputs, names = [], [], ["A", "B"]
    for name, shape in (("A", ["M", "K"]), ("B", ["K", "N"])):
        text = name
        if rng.random() < 0.35:
            shape.reverse()
            text += ".transpose(-1, -2)"
        if which == "both" or which == ("left" if name == "A" else "right"):
            shape = lead + shape
        if rng.random() < 0.1:
            text = rng.choice(PROLOGUES).format(x=text)
        terms.append(text)
        inputs.append(tensor(shape, dtype))
    body, extra = rng.choice(EPILOGUES)
    if extra:
        names.append(next(x for x in ("bias", "rest", "column") if x in body))
        shape = lead + ["M", "N"] if extra == "OUT" else extra.strip("()").split(", ")
        inputs.append(tensor([s.rstrip(",") for s in shape], dtype))
    dims = "x".join(map(str, ([batch] if batch else []) + ([2] if heads else []) + [m, k, n]))
    return write(f"{dtype}, {dims}", sizes, names, body.format(c=f"torch.matmul({terms[0]}, {terms[1]})"), inputs)


def triangle(rng, dtype):
    """Of square matrices, of which one triangle is kept."""
    n = max(64, side(rng) // 4)
    keep = rng.choice(["torch.tril", "torch.triu"])
    if rng.random() < 0.5:
        inputs = [f"{keep}({tensor(['N', 'N'], dtype)})" for _ in range(2)]
        return write(f"{dtype}, {keep} of inputs and product, {n}", {"N": n}, ["A", "B"], f"{keep}(A @ B)", inputs)
    return write(f"{dtype}, A A^T, {n}", {"N": n, "K": side(rng)}, ["A"], "torch.matmul(A, A.transpose(0, 1))", [tensor(["N", "K"], dtype)])


def linears(rng, dtype):
    """One to four Linear layers with activations between them, maybe a residual."""
    count = rng.choice([1, 2, 3, 3, 4])
    names = [f"N{i}" for i in range(count + 1)]
    sizes = {"M": max(16, min(side(rng), 4096))}
    for name in names:
        sizes[name] = max(8, min(side(rng), 4096))
    residual = rng.random() < 0.3
    if residual:
        sizes[names[-1]] = sizes[names[0]]
    activation = rng.choice(ACTIVATIONS)
    init = "    def __init__(self):\n        super().__init__()\n"
    body = "x"
    for i in range(count):
        bias = rng.random() < 0.8
        init += f"        self.layer{i} = nn.Linear({names[i]}, {names[i + 1]}, bias={bias}, dtype=torch.{dtype})\n"
        body = f"self.layer{i}({body})"
        if i + 1 < count or rng.random() < 0.5:
            body = f"{activation}({body})"
    body += " + x" if residual else ""
    title = f"{dtype}, {count} linear layers, {'x'.join(str(v) for v in sizes.values())}"
    return write(title, sizes, ["x"], body, [tensor(["M", names[0]], dtype)], init + "\n")


def several(rng, dtype):
    """Products that meet: in a chain, in a sum, in a gate."""
    m, n, k, p = (max(8, min(side(rng), 3000)) for _ in range(4))
    sizes = {"M": m, "N": n, "K": k, "P": p}
    left, right = tensor(["M", "K"], dtype), tensor(["K", "N"], dtype)
    kind = rng.choice(["chain", "sum", "gate"])
    if kind == "chain":
        return write(f"{dtype}, (A B) C", sizes, ["A", "B", "C"], "torch.relu(A @ B * 0.125) @ C", [left, right, tensor(["N", "P"], dtype)])
    if kind == "sum":
        others = [tensor(["M", "P"], dtype), tensor(["N", "P"], dtype)]
        return write(f"{dtype}, A B + C D^T", sizes, ["A", "B", "C", "D"], "A @ B + C @ D.t()", [left, right] + others)
    more = [right, tensor(["N", "P"], dtype)]
    body = "(torch.nn.functional.silu(A @ B * 0.125) * (A @ C * 0.125)) @ D"
    return write(f"{dtype}, gated", sizes, ["A", "B", "C", "D"], body, [left, right] + more)


def task(rng):
    dtype = rng.choice(["float32"] * 4 + ["float16", "bfloat16"])
    kinds = [one_product] * 15 + [linears] * 3 + [several] + [triangle]
    return rng.choice(kinds)(rng, dtype)


def main():
    out, count = sys.argv[1], int(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    os.makedirs(out, exist_ok=True)
    for i in range(count):
        with open(os.path.join(out, f"product_{i:03}.py"), "w") as file:
            file.write(task(rng))


main()
