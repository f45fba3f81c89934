"""Whole blocks with attention in fp32 on a GPU: our kernels beside eager PyTorch and torch.compile.

    python3 bench/gpu/attention_blocks.py tasks DIR               the blocks as tasks
    python3 bench/gpu/attention_blocks.py kernels CUTEGEN LADDER DIR [BLOCK...]  the predicted kernels, DIR/BLOCK.cu; and DIR/BLOCK_split.cu,
                                                                  where attention splits what products could write split. Needs no GPU, but
                                                                  DEVICE=cuda:0 describes blocks of this size in less time
    python3 bench/gpu/attention_blocks.py time KERNELS OUT.json [BLOCK...]      KERNELS: BLOCK.so, as attention_kernels.py says

The block `qkv` less the block `product` is attention behind its product: bench/gpu/attention_table.py shows it.

The kernels are for the batch that they were described with. Cold L2, medians of three interleaved rounds, TF32 off. COMPILE=no: without
torch.compile, whose compilations take most of the time.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

HEAD = '''import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = {batch}

'''
BLOCKS = {
    "mingpt": (32, '''
class Model(nn.Module):
    """A causal block: 8 heads of 96, 512 tokens."""

    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(768), nn.LayerNorm(768)
        self.attn, self.proj = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.up, self.down = nn.Linear(768, 4 * 768), nn.Linear(4 * 768, 768)

    def forward(self, x):
        q, k, v = self.attn(self.ln_1(x)).split(768, dim=2)
        q, k, v = (t.view(-1, 512, 8, 96).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(-1, 512, 768))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


def get_inputs():
    return [torch.randn(BATCH, 512, 768)]
'''),
    "qkv": (128, '''
class Model(nn.Module):
    """One product makes Q, K and V: 8 heads of 96, 512 tokens, causal."""

    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(768, 3 * 768)

    def forward(self, x):
        q, k, v = self.attn(x).split(768, dim=2)
        q, k, v = (t.view(-1, 512, 8, 96).transpose(1, 2) for t in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(-1, 512, 768)


def get_inputs():
    return [torch.randn(BATCH, 512, 768)]
'''),
    "product": (128, '''
class Model(nn.Module):
    """The product alone."""

    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(768, 3 * 768)

    def forward(self, x):
        return self.attn(x)


def get_inputs():
    return [torch.randn(BATCH, 512, 768)]
'''),
    "vit": (64, '''
class Model(nn.Module):
    """A block of a vision transformer: 12 heads of 64, 197 patches."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(768), nn.LayerNorm(768)
        self.qkv, self.proj = nn.Linear(768, 3 * 768), nn.Linear(768, 768)
        self.fc1, self.fc2 = nn.Linear(768, 3072), nn.Linear(3072, 768)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).reshape(-1, 197, 3, 12, 64).permute(2, 0, 3, 1, 4).unbind(0)
        p = ((q * 0.125) @ k.transpose(-2, -1)).softmax(dim=-1)
        x = x + self.proj((p @ v).transpose(1, 2).reshape(-1, 197, 768))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


def get_inputs():
    return [torch.randn(BATCH, 197, 768)]
'''),
    "relu": (16, '''
class Model(nn.Module):
    """ReLU in place of the softmax, causal: 12 heads of 64, 1024 tokens."""

    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(768, 3 * 768)

    def forward(self, x):
        q, k, v = self.attn(x).split(768, dim=2)
        q, k, v = (t.view(-1, 1024, 12, 64).transpose(1, 2) for t in (q, k, v))
        s = (q @ k.transpose(-2, -1)) * 0.125
        s = s.masked_fill(torch.triu(torch.ones(1024, 1024, device=x.device), 1).bool(), float("-inf"))
        return (F.relu(s) @ v).transpose(1, 2).reshape(-1, 1024, 768)


def get_inputs():
    return [torch.randn(BATCH, 1024, 768)]
'''),
    "cross": (32, '''
class Model(nn.Module):
    """Cross attention: 1024 queries, 256 keys of a context, 8 heads of 64."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(512, 512), nn.Linear(768, 1024), nn.Linear(512, 512)

    def forward(self, x, context):
        q = self.q(x).view(-1, 1024, 8, 64).transpose(1, 2)
        k, v = (t.view(-1, 256, 8, 64).transpose(1, 2) for t in self.kv(context).chunk(2, dim=-1))
        p = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(64), dim=-1)
        return self.out((p @ v).transpose(1, 2).reshape(-1, 1024, 512))


def get_inputs():
    return [torch.randn(BATCH, 1024, 512), torch.randn(BATCH, 256, 768)]
'''),
}
END = '''

def get_init_inputs():
    return []
'''


def text(name):
    return HEAD.format(batch=BLOCKS[name][0]) + BLOCKS[name][1] + END


PLANES = "leave out: write Q, K and V in fp16 parts"  # how the change of that step begins


def write_kernels(cutegen, ladder, out, names):
    """The predicted kernel of each block, and that without the step `planes`."""
    root = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    os.environ.setdefault("CUTEGEN_HOME", root)
    os.makedirs(out, exist_ok=True)
    for name in names or BLOCKS:
        with tempfile.TemporaryDirectory() as work:
            with open(f"{work}/{name}.py", "w") as file:
                file.write(text(name))
            described = subprocess.run([cutegen, "describe", f"{work}/{name}.py", "--device", os.environ.get("DEVICE", "simt"), "--no-scale", "--json"],
                                       stdout=subprocess.PIPE, text=True, check=True)
            with open(f"{work}/{name}.json", "w") as file:
                file.write(described.stdout)
            steps = subprocess.run([ladder, f"{work}/{name}.json", work, "sm_90a", "neighbours"], stdout=subprocess.PIPE, text=True, check=True)
            found = [line.split(":")[0].split()[-1] for line in steps.stdout.splitlines() if PLANES in line]
            for number, to in [("0", name), *((number, f"{name}_split") for number in found[:1])]:
                os.replace(f"{work}/{name}.{number}.cu", f"{out}/{to}.cu")
                print(f"{to}.cu", flush=True)


def columns(name, kernels):
    import attention
    import torch
    space = {}
    exec(compile(text(name), name, "exec"), space)
    torch.manual_seed(0)
    model = space["Model"]().cuda().eval()
    inputs = [x.cuda() for x in space["get_inputs"]()]
    state = list(model.state_dict().values())
    want = model.double()(*(x.double() for x in inputs))
    model.float()
    found = {"eager": lambda: model(*inputs)}
    outs = {column: torch.full(want.shape, float("nan"), device="cuda") for column in ("ours", "split")}
    for column, file in (("ours", name), ("split", f"{name}_split")):
        if column == "split" and not os.path.exists(f"{kernels}/{file}.so"):
            continue
        try:
            call = attention.caller(f"{kernels}/{file}.so", (*inputs, *state), outs[column])
            call()
            torch.cuda.synchronize()
            found[column] = call
        except (OSError, RuntimeError) as error:
            print(f"{file}: {error}", flush=True)
    if os.environ.get("COMPILE") != "no":
        begin = time.time()
        compiled = torch.compile(model)
        compiled(*inputs)
        torch.cuda.synchronize()
        print(f"{name}: compiled in {time.time() - begin:.0f} s", flush=True)
        found["compile"] = lambda: compiled(*inputs)
    return found, lambda column: outs[column] if column in outs else found[column](), want


def measure(name, kernels, flush):
    import attention
    found, result, want = columns(name, kernels)
    times = {column: [] for column in found}
    order = list(found)
    for _ in range(attention.ROUNDS):
        for column in order:
            time.sleep(0.02)
            times[column] += attention.times_us(found[column], 5, flush)
        order = order[-1:] + order[:-1]
    row = {}
    for column in found:
        bad = result(column).double() - want
        row[column] = {"us": attention.median(times[column]), "rms": (bad.square().sum() / want.square().sum()).sqrt().item()}
        print(f"{name:8} {column:8} {row[column]['us']:10.1f} us  rms {row[column]['rms']:.2e}", flush=True)
    if "ours" in row:
        print(f"{name:8} eager / ours {row['eager']['us'] / row['ours']['us']:.2f}  {attention.clocks()}", flush=True)
    return row


def main():
    if sys.argv[1] == "kernels":
        return write_kernels(*sys.argv[2:5], sys.argv[5:])
    if sys.argv[1] == "tasks":
        os.makedirs(sys.argv[2], exist_ok=True)
        for name in BLOCKS:
            with open(f"{sys.argv[2]}/{name}.py", "w") as file:
                file.write(text(name))
        return
    import torch
    flush, results = torch.empty(64 << 20, dtype=torch.float32, device="cuda"), {}
    with torch.no_grad():
        for name in sys.argv[4:] or BLOCKS:
            try:
                results[name] = measure(name, sys.argv[2], flush)
            except RuntimeError as error:
                print(f"{name}: {str(error).splitlines()[0]}", flush=True)
            with open(sys.argv[3], "w") as file:
                json.dump(results, file, indent=1)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
