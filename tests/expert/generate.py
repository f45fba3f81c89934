"""Random tasks for the built-in engineer: pointwise graphs, reductions over random dimensions, norms, losses, scans, pools.

    python3 tests/expert/generate.py OUT_DIR [COUNT [SEED]]

The same seed gives the same files, whatever the Python. Sizes are small and often odd, operands broadcast, are
transposed views or of another dtype; every task is one the engineer must write.
"""
import pathlib
import sys

TASK = '''"""Generated task {number}: {kind}."""
import torch
import torch.nn as nn
import torch.nn.functional as F

SCALE = 1


class Model(nn.Module):
{init}    def forward(self, {arguments}):
{body}        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

UNARY = (
    "torch.relu({}) torch.sigmoid({}) torch.tanh({}) F.gelu({}) F.silu({}) torch.abs({}) F.softplus({}) "
    "F.elu({}) F.hardtanh({}) F.leaky_relu({},0.1) torch.exp(-torch.abs({})) torch.sqrt(torch.abs({})+0.5) "
    "torch.sin({}) torch.cos({}) torch.log1p(torch.abs({})) torch.square({}) F.hardswish({}) F.mish({}) "
    "torch.clamp({},-0.7,0.9) F.hardsigmoid({}) torch.erf({}) torch.floor({}) ({})**3 F.selu({}) F.softsign({}) "
    "torch.rsqrt(torch.square({})+0.5) F.relu6({}) torch.atan({}) torch.expm1({}*0.5)"
).split(" ")
BINARY = (
    "{}+{};{}-{};{}*{};{}/({}.abs()+0.5);torch.maximum({},{});torch.minimum({},{});torch.where({}>0,{},0.25);"
    "torch.add({},{},alpha=0.3);torch.lerp({},{},0.25);torch.where({}>{},1.5,-0.5)"
).split(";")
REDUCE = (
    "torch.sum({x},dim={d},keepdim={k});torch.mean({x},dim={d},keepdim={k});torch.amax({x},dim={d},keepdim={k});"
    "torch.amin({x},dim={d},keepdim={k});torch.var({x},dim={d},keepdim={k});torch.std({x},dim={d},keepdim={k});"
    "torch.logsumexp({x},dim={d},keepdim={k});torch.norm({x},dim={d},keepdim={k})"
).split(";")
SINGLE = (
    "torch.argmax({x},dim={d});torch.argmin({x},dim={d});torch.max({x},dim={d})[0];torch.softmax({x},dim={d});"
    "torch.log_softmax({x},dim={d});torch.cumsum({x},dim={d});torch.min({x},dim={d})[0];"
    "torch.cumsum({x}.flip({d}),dim={d}).flip({d});torch.prod({x},dim={d})"
).split(";")
LOSSES = (
    "F.mse_loss({x},{y});torch.mean(({x}-{y})**2);F.smooth_l1_loss({x},{y});torch.mean(torch.clamp(1-{x}*{y},min=0));"
    "torch.mean(1-F.cosine_similarity({x},{y},dim=1));torch.sum(torch.abs({x}-{y}));F.l1_loss({x},{y});"
    "torch.mean(torch.norm({x}-{y},dim=1))"
).split(";")
PARTS = (
    "torch.sigmoid(a[..., {k}:])*a[..., :-{k}];a[:, ::{k}]+1;a.chunk(2,dim=-1)[0]*F.silu(a.chunk(2,dim=-1)[1]);"
    "torch.softmax(a[..., {k}:],dim=-1);a[0]*2+a[-1];torch.split(a,{k},dim=-1)[1].sum(dim=-1);a.unbind(0)[1]-a.unbind(0)[0];"
    "F.normalize(a,dim=-1);torch.any(a>1,dim=-1);F.kl_div(F.log_softmax(a,-1),torch.softmax(-a,-1),reduction='batchmean');"
    "torch.linalg.vector_norm(a,ord=float('inf'),dim=-1);torch.amax(a[:, 1:-1],dim=0);F.logsigmoid(a[..., 1::2]);"
    "F.binary_cross_entropy_with_logits(a,torch.sigmoid(-a));torch.mean(torch.softmax(a,dim=-1)*a);"
    "torch.floor_divide((a*10).to(torch.int32),4)+(a*10).to(torch.int32)%3"
).split(";")
SIZES = [1, 2, 3, 5, 7, 8, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 96, 100, 127, 128, 130]


class Dice:
    """A small generator of its own: the same numbers everywhere."""

    def __init__(self, seed):
        self.state = (seed * 2654435761 + 12345) & 0xFFFFFFFF

    def below(self, n):
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % n

    def pick(self, items):
        return items[self.below(len(items))]

    def shape(self, dims, limit=60000):
        while True:
            shape = [self.pick(SIZES) for _ in range(dims)]
            total = 1
            for size in shape:
                total *= size
            if 2 <= total <= limit:
                return shape


def tensor(dice, shape, dtype, plain=False):
    """An expression that makes an input of that shape, sometimes a transposed or sliced one."""
    form = 0 if plain else dice.below(6)
    cast = "" if dtype == "f32" else {"f16": ".half()", "bf16": ".bfloat16()"}[dtype]
    if form == 1 and len(shape) > 1:
        turned = shape[:-2] + [shape[-1], shape[-2]]
        return f"torch.randn({', '.join(map(str, turned))}){cast}.transpose(-1, -2)"
    if form == 2:
        wide = shape[:-1] + [shape[-1] * 2]
        return f"torch.randn({', '.join(map(str, wide))}){cast}[..., ::2]"
    if form == 3:
        wide = shape[:-1] + [shape[-1] + 3]
        return f"torch.randn({', '.join(map(str, wide))}){cast}[..., 3:]"
    return f"torch.randn({', '.join(map(str, shape))}){cast}"


def chain(dice, names, steps, body, prefix="t"):
    """Statements of random pointwise operators over the names; the name of the last one."""
    names = list(names)
    for i in range(steps):
        if dice.below(2) or len(names) == 1:
            form = dice.pick(UNARY).replace("{}", dice.pick(names[-2:]))
        else:
            form = dice.pick(BINARY)
            while "{}" in form:
                form = form.replace("{}", dice.pick(names), 1)
        name = f"{prefix}{i}"
        body.append(f"        {name} = {form}\n")
        names.append(name)
    return names[-1]


def pointwise(dice):
    dtype = dice.pick(["f32", "f32", "f32", "f16", "bf16"])
    shape = dice.shape(1 + dice.below(4))
    inputs, names, body = [tensor(dice, shape, dtype)], ["a"], []
    for k in range(dice.below(3)):
        other = [1 if dice.below(3) == 0 else size for size in shape][dice.below(len(shape)) :]
        inputs.append(tensor(dice, other, dtype))
        names.append("bcd"[k])
    last = chain(dice, names, 2 + dice.below(6), body)
    result = f"{last} + a * 0.5"
    if dice.below(4) == 0:
        result = f"({result}, torch.tanh({last}) * a)"
    return "pointwise", "", names, body, result, inputs


def reduction(dice):
    dtype = dice.pick(["f32", "f32", "f32", "f16"])
    dims = 1 + dice.below(4)
    shape = dice.shape(dims)
    reduced = sorted({dice.below(dims) for _ in range(1 + dice.below(2))})
    if max(shape[d] for d in reduced) < 2:
        shape[reduced[0]] = 37
    body = []
    last = chain(dice, ["a"], dice.below(3), body)
    dim = reduced if len(reduced) > 1 else reduced[0]
    keep = dice.below(2) == 0
    form = dice.pick(REDUCE).format(x=last, d=tuple(dim) if isinstance(dim, list) else dim, k=keep)
    body.append(f"        r = {form}\n")
    result = "r"
    if keep and dice.below(2):
        result = f"{last} - r * 0.5" if dice.below(2) else "torch.sigmoid(a) * r"
    elif dice.below(3) == 0:
        result = "torch.tanh(r) + 1"
    return "reduction", "", ["a"], body, result, [tensor(dice, shape, dtype)]


def single(dice):
    dims = 1 + dice.below(3)
    shape = dice.shape(dims)
    dim = dice.below(dims)
    if shape[dim] < 2:
        shape[dim] = 45
    body = []
    last = chain(dice, ["a"], dice.below(2), body)
    form = dice.pick(SINGLE)
    if "arg" in form:  # of the input itself: a rounded function may have its maximum elsewhere
        last, body = "a", []
    form = form.format(x=last, d=dim)
    return "along one dimension", "", ["a"], body, form, [tensor(dice, shape, "f32", plain=dice.below(2) == 0)]


def norm(dice):
    kind = dice.below(5)
    batch, channels, rest = 1 + dice.below(5), dice.pick([4, 8, 12, 16]), dice.pick([[5, 7], [8, 8], [33], [64]])
    shape = [batch, channels, *rest]
    layer = {1: f"nn.GroupNorm({dice.pick([1, 2, 4])}, {channels})", 4: f"nn.LayerNorm({shape[1:]})"}
    layer[0] = f"nn.LayerNorm({shape[-1]})"
    layer[2] = f"nn.InstanceNorm{len(rest)}d({channels})"
    layer[3] = f"nn.BatchNorm{len(rest)}d({channels}).eval()"
    init = f"    def __init__(self):\n        super().__init__()\n        self.norm = {layer[kind]}\n\n"
    body = []
    last = chain(dice, ["a"], dice.below(2), body)
    result = f"torch.relu(self.norm({last}))" if dice.below(2) else f"self.norm({last})"
    return "norm", init, ["a"], body, result, [tensor(dice, shape, "f32", plain=True)]


def loss(dice):
    shape = [2 + dice.below(60), dice.pick([4, 8, 33, 64, 100])]
    if dice.below(4) == 0:
        inputs = [tensor(dice, shape, "f32", plain=True), f"torch.randint(0, {shape[1]}, ({shape[0]},))"]
        return "loss", "", ["a", "b"], [], "F.cross_entropy(a, b)", inputs
    inputs = [tensor(dice, shape, "f32", plain=True) for _ in range(2)]
    return "loss", "", ["a", "b"], [], dice.pick(LOSSES).format(x="a", y="b"), inputs


def part(dice):
    shape = [2 + dice.below(20), 2 * (4 + dice.below(30))]
    if dice.below(2):
        shape.insert(1, 3 + dice.below(9))
    form = PARTS[dice.turn % len(PARTS)].format(k=2 + dice.below(3))
    dtype = "f32" if "int32" in form else dice.pick(["f32", "f32", "bf16"])
    return "parts", "", ["a"], [], form, [tensor(dice, shape, dtype, plain=dice.below(2) == 0)]


def pool(dice):
    """Windows of one to three dimensions, any stride, padding and dilation; and running products."""
    if dice.turn % 4 == 3:
        shape = [1 + dice.below(5), 3 + dice.below(400)]
        return "running product", "", ["a"], [], "torch.cumprod(a, dim=1)", [tensor(dice, shape, "f32", plain=True)]
    dims = 1 + dice.turn % 3
    largest = dice.below(2) == 0
    size = [1 + dice.below(5) for _ in range(dims)]
    stride = [1 + dice.below(3) for _ in range(dims)]
    pad = [dice.below(k // 2 + 1) for k in size]
    words = [f"kernel_size={size}", f"stride={stride}", f"padding={pad}"]
    dilation = [1] * dims
    if largest:
        dilation = [1 + dice.below(3) for _ in range(dims)]
        words.append(f"dilation={dilation}")
    else:
        words.append(f"count_include_pad={dice.below(2) == 0}")
    sides = [(k - 1) * d + 1 + dice.below(30) for k, d in zip(size, dilation)]
    if dice.below(2):
        sides[-1] += -sides[-1] % 8  # whole vectors
    shape = [1 + dice.below(2), 1 + dice.below(3), *sides]
    form = f"F.{'max' if largest else 'avg'}_pool{dims}d(a, {', '.join(words)})"
    dtype = dice.pick(["f32", "f32", "bf16"])
    return "pooling", "", ["a"], [], form, [tensor(dice, shape, dtype, plain=True)]


def main():
    out = pathlib.Path(sys.argv[1])
    count, seed = (int(word) for word in (sys.argv[2:] + ["208", "1"][len(sys.argv) - 2 :])[:2])
    out.mkdir(parents=True, exist_ok=True)
    kinds = [pointwise, reduction, single, norm, pointwise, reduction, single, loss]
    for number in range(count):
        dice = Dice(seed * 1000 + number)
        dice.below(2)
        dice.turn = number
        make = kinds[number % len(kinds)] if number < 160 else part if number < 176 else pool  # the first ones stay as they were
        kind, init, names, body, result, inputs = make(dice)
        text = TASK.format(
            number=number,
            kind=kind,
            init=init,
            arguments=", ".join(f"{name}: torch.Tensor" for name in names),
            body="".join(body),
            result=result,
            inputs=", ".join(inputs),
        )
        (out / f"task{number:03d}.py").write_text(text)


main()
