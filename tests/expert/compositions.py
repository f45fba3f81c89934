"""Modules that nobody wrote: random operators of every family, one after the other, at sizes where kernels break.

    python3 tests/expert/compositions.py OUT_DIR [COUNT [SEED]]
    python3 tests/expert/compositions.py --count

A module holds one tensor x of rank 3 whose shape is followed here, and earlier ones that it comes back to. Sizes are 1, odd,
31 to 33, larger; one module in twenty has an empty batch. Every number of COUNT is another module; SEED gives others.
"""
import pathlib
import random
import sys

TASK = '''"""Module {number}: composed, seed {seed}: {words}."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}        self.eval()

    def forward(self, x, z):
{body}        return {result}


def get_inputs():
    return [torch.randn({shape}){dtype}, torch.randn({last}){dtype}]


def get_init_inputs():
    return []
'''
SIZES = (1, 2, 3, 5, 7, 8, 16, 31, 32, 33, 40, 65, 100, 128)
MOST = 60000  # elements


class Written:
    """A module while it is written: its lines, its layers and the shape of x."""

    def __init__(self, rng, shape):
        self.rng, self.shape, self.first = rng, list(shape), list(shape)
        self.lines, self.layers, self.kept = [], [], [("x0", list(shape))]

    def layer(self, text):
        name = f"l{len(self.layers)}"
        self.layers.append((name, text))
        return f"self.{name}"

    def set(self, expression, shape=None):
        self.lines.append(f"x = {expression}")
        self.shape = list(self.shape if shape is None else shape)


def pointwise(w):
    w.set(w.rng.choice(("torch.relu(x)", "torch.tanh(x)*2-0.1", "F.gelu(x)", "F.silu(x)+x", "x.abs().sqrt()", "torch.exp(-x*x)",
                        "torch.where(x>0,x,torch.sin(x))", "x.clamp(-1.5,0.7)", "F.softplus(x)-1", "torch.sign(x)*torch.log1p(x.abs())",
                        "x*torch.sigmoid(x*1.7)", "F.hardswish(x)", "torch.atan2(x,x*x+1)", "(x*4).round()/4", "x%0.75")))


def normalized(w):
    d = w.rng.choice((0, 1, 2))
    w.set(w.rng.choice((f"torch.softmax(x,{d})", f"F.log_softmax(x,{d})", f"x-x.mean({d},keepdim=True)", f"F.normalize(x,dim={d})",
                        f"x/(x.abs().amax({d},keepdim=True)+1)", f"x*torch.rsqrt(x.pow(2).mean({d},keepdim=True)+1e-3)",
                        f"x-torch.logsumexp(x,{d},keepdim=True)", f"x*(x.var({d},unbiased=False,keepdim=True)+0.1)")))


def layer_norm(w):
    if w.rng.random() < 0.5:
        w.set(f"{w.layer(f'nn.LayerNorm({w.shape[2]})')}(x)")
    else:
        groups = w.rng.choice([g for g in (1, 2, 3, 4, w.shape[1]) if w.shape[1] % g == 0])
        if w.shape[2] * w.shape[1] // groups > 1:
            w.set(f"{w.layer(f'nn.GroupNorm({groups},{w.shape[1]})')}(x)")


def batch_norm(w):
    w.set(f"{w.layer(f'nn.BatchNorm1d({w.shape[1]})')}(x)")


def linear(w):
    n = w.rng.choice(SIZES)
    bias = w.rng.choice((True, False))
    tail = w.rng.choice(("", "", ".relu()", "*0.5", ".sigmoid()"))
    w.set(f"{w.layer(f'nn.Linear({w.shape[2]},{n},bias={bias})')}(x){tail}", [*w.shape[:2], n])


def convolution(w):
    k = w.rng.choice((1, 3, 5))
    stride, groups = w.rng.choice((1, 1, 2)), 1
    out = w.rng.choice((1, 4, 7, 16))
    if w.rng.random() < 0.3:
        groups = out = w.shape[1]
    size = (w.shape[2] + 2 * (k // 2) - k) // stride + 1
    w.set(f"{w.layer(f'nn.Conv1d({w.shape[1]},{out},{k},stride={stride},padding={k // 2},groups={groups})')}(x)", [w.shape[0], out, size])


def pooled(w):
    k = w.rng.choice((2, 3))
    if w.shape[2] >= k:
        kind, stride = w.rng.choice(("avg", "max")), w.rng.choice((1, k))
        w.set(f"F.{kind}_pool1d(x,{k},{stride})", [*w.shape[:2], (w.shape[2] - k) // stride + 1])


def gram(w):
    if w.rng.random() < 0.5:
        w.set("x@x.transpose(1,2)*0.1", [w.shape[0], w.shape[1], w.shape[1]])
    else:
        w.set("torch.einsum('bmn,bmk->bnk',x,x.tanh())*0.1", [w.shape[0], w.shape[2], w.shape[2]])


def moved(w):
    b, m, n = w.shape
    d = w.rng.choice((1, 2))
    size, other = w.shape[d], 3 - d
    a, c = sorted(w.rng.sample(range(size + 1), 2)) if size > 1 else (0, 1)
    a, c = (a, c) if a < c else (0, size)
    part = list(w.shape)
    part[d] = c - a
    doubled = list(w.shape)
    doubled[d] = 2 * size - a
    half = list(w.shape)
    half[d] = (size + 1) // 2
    pads = list(w.shape)
    pads[2] += 3
    w.set(*w.rng.choice((
        ("x.transpose(1,2)", [b, n, m]), ("x.flip((1,2))", None), (f"x.roll({w.rng.randrange(-9, 9)},{d})", None),
        (f"x.narrow({d},{a},{c - a})", part), (f"torch.cat([x,x.narrow({d},{a},{size - a})*2],{d})", doubled),
        (f"x[{':,' * d}::2]", half), ("F.pad(x,(1,2),value=0.25)", pads), (f"x.transpose(1,2).reshape({b},{m},{n})", None),
        (f"x.reshape({b},{n},{m})", [b, n, m]), (f"torch.stack([x,x*2],{other}).flatten({other},{other + 1})", [b, m * (2 if other == 1 else 1), n * (2 if other == 2 else 1)]),
        ("x.expand(2,-1,-1,-1).sum(0)", None), ("x.unfold(2,1,1).squeeze(3)", None), (f"x.repeat_interleave(2,{d})", [b, m * (1 + (d == 1)), n * (1 + (d == 2))]),
        ("torch.tril(x)", None), ("torch.triu(x,1)+x*0.5", None))))


def scanned(w):
    d = w.rng.choice((1, 2))
    w.set(w.rng.choice((f"x.cumsum({d})*0.2", f"torch.cummax(x,{d})[0]", f"x.flip({d}).cumsum({d}).flip({d})*0.2", f"torch.logcumsumexp(x,{d})",
                        f"(x*0.5+1).cumprod({d}).clamp(-9,9)")))


def ordered(w):
    d = w.rng.choice((1, 2))
    k = w.rng.randrange(1, w.shape[d] + 1)
    some = list(w.shape)
    some[d] = k
    w.set(*w.rng.choice(((f"x.sort({d})[0]", None), (f"x.topk({k},{d})[0]", some), (f"x.sort({d},descending=True)[0]", None),
                         (f"x-x.median({d},keepdim=True)[0]", None), (f"x-x.kthvalue({k},{d},keepdim=True)[0]", None))))


def gathered(w):
    b, m, n = w.shape
    d = w.rng.choice((1, 2))
    size = w.shape[d]
    places = [w.rng.randrange(size) for _ in range(w.rng.choice((1, 3, 9)))]
    picked = list(w.shape)
    picked[d] = len(places)
    ones = list(w.shape)
    ones[d] = 1
    w.set(*w.rng.choice((
        (f"torch.gather(x,{d},x.argmax({d},keepdim=True))+x", None), (f"x.index_select({d},torch.tensor({places}))", picked),
        (f"x[{':,' * d}{places}]", picked), (f"x*F.one_hot(x.argmax(2),{n})", None), (f"x.masked_fill(x>x.mean({d},keepdim=True),-0.5)", None),
        (f"x.scatter_add({d},torch.zeros({tuple(ones)},dtype=torch.int64),x.narrow({d},0,1))", None),
        (f"x.index_add({d},torch.tensor({places}),x.index_select({d},torch.tensor({places})))", None),
        (f"x.gather({d},(x.abs()*7).long()%{size})", None))))


def with_input(w):
    w.set(w.rng.choice(("x+z.mean()", "x*z.sum().tanh()", "x-z.amax()*0.1", "x+z.var()")))


def with_earlier(w):
    name, shape = w.rng.choice(w.kept)
    if shape == w.shape:
        w.set(w.rng.choice((f"x+{name}", f"x*{name}.sigmoid()", f"torch.maximum(x,{name})")))
    elif shape[:2] == w.shape[:2]:
        w.set(f"torch.cat([x,{name}],2)", [*w.shape[:2], w.shape[2] + shape[2]]) if w.rng.random() < 0.5 else w.set(f"x+{name}.mean(2,keepdim=True)")
    elif shape[0] == w.shape[0] and shape[2] == w.shape[2]:
        w.set(f"x@{name}.transpose(1,2)*0.1", [*w.shape[:2], shape[1]])
    elif shape[0] == w.shape[0]:
        w.set(f"x+{name}.sum((1,2),keepdim=True)*0.01")


def transformed(w):
    w.set(*w.rng.choice((("torch.fft.rfft(x,dim=2).abs()*0.3", [*w.shape[:2], w.shape[2] // 2 + 1]),
                         (f"torch.fft.irfft(torch.fft.rfft(x,dim=2)*0.5,{w.shape[2]},dim=2)", None), ("torch.fft.fft(x,dim=1).real*0.3", None))))


FAMILIES = ((pointwise, 5), (normalized, 4), (layer_norm, 2), (batch_norm, 1), (linear, 4), (convolution, 2), (pooled, 2), (gram, 2), (moved, 6),
            (scanned, 2), (ordered, 2), (gathered, 3), (with_input, 1), (with_earlier, 4), (transformed, 1))
ENDS = ("x", "x", "x", "x.sum(1)", "x.amax((1,2))", "x.mean()", "(x,x.sum((0,2)))", "(x.amax(2),x.argmax(2))", "x.sum((1,2)).softmax(0)", "x.std(2,unbiased=False)")
EMPTY_ENDS = ("x.sum(0)", "x.sum((0,1))", "(x,x.sum((0,2)))")  # where all results are empty, nothing is computed


def module(number, seed):
    rng = random.Random(f"{seed}/{number}")
    shape = [rng.choice((1, 2, 3, 5)), rng.choice(SIZES), rng.choice(SIZES)]
    empty = rng.random() < 0.05
    w = Written(rng, shape)
    dtype = rng.choice((None, None, None, None, "float16", "bfloat16"))
    for _ in range(rng.randrange(3, 11)):
        make = rng.choices([f for f, _ in FAMILIES], [n for _, n in FAMILIES])[0]
        if make is transformed and (dtype or empty):
            continue
        before = (list(w.shape), len(w.lines), len(w.layers))
        make(w)
        if w.shape[0] * w.shape[1] * w.shape[2] > MOST or (empty and any(word in w.lines[-1] for word in ("reshape", "mean(0", "max(0", "var(0", "gather"))):
            w.shape = before[0]
            del w.lines[before[1] :], w.layers[before[2] :]
        elif rng.random() < 0.3 and len(w.lines) > before[1]:
            w.kept.append((f"x{len(w.lines)}", list(w.shape)))
            w.lines.append(f"x{len(w.lines)} = x")
    end = rng.choice(EMPTY_ENDS if empty else ENDS)
    size = [0, *shape[1:]] if empty else shape
    cast = f".to(torch.{dtype})" if dtype else ""
    init = "".join(f"        self.{n} = {t}{cast}\n" for n, t in w.layers)
    return TASK.format(number=number, seed=seed, words="; ".join(w.lines).replace("\\", ""), init=init,
                       body="        x0 = x\n" + "".join(f"        {line}\n" for line in w.lines), result=end,
                       shape=", ".join(map(str, size)), last=rng.choice(SIZES), dtype=cast)


def main():
    if sys.argv[1:2] == ["--count"]:
        print(200)
        return
    if not sys.argv[1:] or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    out, count, seed = pathlib.Path(sys.argv[1]), int((sys.argv[2:3] or ["200"])[0]), int((sys.argv[3:4] or ["1"])[0])
    out.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (out / f"task{number:03d}.py").write_text(module(number, seed))


main()
