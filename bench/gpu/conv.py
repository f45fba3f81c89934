#!/usr/bin/env python3
"""Convolutions beside PyTorch: what the engineer writes for the shapes of a table, timed and compared with float64.

    bench/gpu/conv.py describe OUT          a description per shape, for expert_ladder (needs no GPU, no PyTorch)
    bench/gpu/conv.py tasks OUT [NAME...]   a task file per shape, for `cutegen run`, `eval` and `build`
    bench/gpu/conv.py ten                   names: those on which `cutegen run` itself is measured, one of each kind
    bench/gpu/conv.py measure LIBS OUT [SECONDS [NAME...]] [--nhwc=PREFIX] [--quick] [--kernels]
    bench/gpu/conv.py once LIB NAME [BATCH]  one call, for a profiler

LIBS holds SHAPE.FORM.so (conv.sh builds them), of the forms x3 (three products), x1 (the high parts alone), f16 and
bf16 (beside cuDNN in channels last), f16l and bf16l (x in channels last as well) and any other. Each is called through the exported entry with the task's tensors,
workspace from the stream's pool. All columns of a row come from one sitting: three rounds, variants in turn, each a
CUDA graph, L2 flushed before each call, medians. --nhwc=PREFIX: also channels last, of names that begin so. --quick:
one distribution, without strict fp32. --kernels: also the time of each kernel of a call. --wait=KERNELS: what
`conv.sh build` is still building out of that folder is waited for. Errors are those of the first image against
float64, on several distributions: rms relative to the result's, maximum relative to the convolution of magnitudes. A
row that the given seconds do not allow for is named and left out.
"""
import csv
import ctypes
import json
import math
import pathlib
import statistics
import sys
import time

# name: transposed, batch, in, out, filter, size, and what differs from stride 1, padding 0, dilation 1, groups 1
SHAPES = {
    "3-96_11x11_s4": (0, 256, 3, 96, (11, 11), (224, 224), {"stride": 4, "pad": 2}),
    "3-64_3x3x3": (0, 16, 3, 64, (3, 3, 3), (64, 64, 64), {}),
    "64-128_3x3": (0, 8, 64, 128, (3, 3), (512, 1024), {}),
    "64-128_5x7": (0, 8, 64, 128, (5, 7), (512, 256), {}),
    "t64-64_3x3": (1, 8, 64, 64, (3, 3), (1024, 1024), {}),
    "t32-16_3x5x7": (1, 16, 32, 16, (3, 5, 7), (16, 32, 64), {}),
    "3-64_3x3x1": (0, 16, 3, 64, (3, 3, 1), (256, 256, 10), {}),
    "3-64_3x5x7_cube": (0, 16, 3, 64, (3, 5, 7), (64, 64, 64), {}),
    "t48-48_3x3x3": (1, 8, 48, 48, (3, 3, 3), (64, 64, 64), {}),
    "32-64_5x9": (0, 8, 32, 64, (5, 9), (512, 512), {}),
    "16-128_3x3": (0, 16, 16, 128, (3, 3), (1024, 1024), {}),
    "t128-128_3": (1, 64, 128, 128, (3,), (65536,), {}),
    "t64-64_3x7": (1, 8, 64, 64, (3, 7), (512, 512), {}),
    "3-64_3x5x7_slab": (0, 8, 3, 64, (3, 5, 7), (16, 128, 128), {}),
    "64-128_3": (0, 32, 64, 128, (3,), (131072,), {}),
    "t32-64_3x5x5": (1, 16, 32, 64, (3, 5, 5), (64, 64, 64), {}),
    "t64-128_3x5": (1, 64, 64, 128, (3, 5), (128, 256), {}),
    "t48-24_3x3x3": (1, 8, 48, 24, (3, 3, 3), (96, 96, 96), {}),
    "t32-32_3x3": (1, 8, 32, 32, (3, 3), (512, 1024), {}),
    "t32-32_3x5x7_s2_g4": (1, 8, 32, 32, (3, 5, 7), (12, 24, 48), {"stride": 2, "pad": (1, 2, 3), "groups": 4, "more": 1}),
    "t32-32_3x3x3_s2": (1, 4, 32, 32, (3, 3, 3), (32, 64, 128), {"stride": 2, "pad": 1}),
    "t32-64_5_d3": (1, 32, 32, 64, (5,), (131072,), {"dil": 3}),
    "t32-64_3x5_s2x3_g4": (1, 16, 32, 64, (3, 5), (128, 256), {"stride": (2, 3), "pad": (1, 2), "dil": (2, 1), "groups": 4}),
    "64-128_3_s3_d4": (0, 64, 64, 128, (3,), (524280,), {"stride": 3, "dil": 4}),
    "t32-64_3x3x3_s2_d2": (1, 16, 32, 64, (3, 3, 3), (16, 32, 32), {"stride": 2, "pad": 1, "dil": 2}),
    "t32-32_3x7": (1, 8, 32, 32, (3, 7), (512, 1024), {"pad": (1, 3)}),
    "t32-64_3_s2_d2": (1, 16, 32, 64, (3,), (131072,), {"stride": 2, "pad": 1, "dil": 2}),
    "32-64_5x9_d2x3": (0, 8, 32, 64, (5, 9), (512, 512), {"pad": (2, 4), "dil": (2, 3)}),
    "t32-64_3x3_s5_d2": (1, 16, 32, 64, (3, 3), (64, 128), {"stride": 5, "pad": 1, "dil": 2}),
    "64_dw_3x3": (0, 16, 64, 64, (3, 3), (512, 512), {"groups": 64}),
    "8_dw_3x1": (0, 64, 8, 8, (3, 1), (512, 512), {"groups": 8}),
    "128_dw_3x3": (0, 64, 128, 128, (3, 3), (256, 512), {"groups": 128}),
    "128_dw_3x7": (0, 32, 128, 128, (3, 7), (128, 256), {"groups": 128}),
    "64-128_1x1": (0, 16, 64, 128, (1, 1), (1024, 1024), {}),
    "r64-64_56": (0, 64, 64, 64, (3, 3), (56, 56), {"pad": 1}),
    "r128-128_28": (0, 64, 128, 128, (3, 3), (28, 28), {"pad": 1}),
    "r256-256_14": (0, 64, 256, 256, (3, 3), (14, 14), {"pad": 1}),
    "r512-512_7": (0, 64, 512, 512, (3, 3), (7, 7), {"pad": 1}),
    "r64-128_56_s2": (0, 64, 64, 128, (3, 3), (56, 56), {"stride": 2, "pad": 1}),
}
# Where 16-bit types are measured too.
HALVES = tuple(n for n, s in SHAPES.items() if len(s[4]) > 1 and s[2] % 8 == 0 and "groups" not in s[6])
NARROW = ("f16", "bf16", "f16l", "bf16l")  # l: channels last
# Where errors are measured on every distribution; elsewhere on uniform x alone.
CLOSELY = ("64-128_3x3", "32-64_5x9", "3-64_3x3x3", "t64-64_3x7", "r256-256_14")


TEN = ("3-96_11x11_s4", "64-128_3x3", "64-128_5x7", "3-64_3x3x3", "64-128_3", "t64-64_3x7", "32-64_5x9_d2x3", "64_dw_3x3", "64-128_1x1", "r256-256_14")
TASK = '''"""{name}: one convolution of the table, fp32."""
import torch
import torch.nn as nn

BATCH, SIZE = {batch}, {size}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.{kind}({arguments}, bias=False)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand(BATCH, {channels}, *SIZE)]


def get_init_inputs():
    return []
'''


class Shape:
    def __init__(self, name):
        self.name = name
        self.transposed, self.n, self.c, self.k, self.taps, self.size, more = SHAPES[name]
        each = lambda key, default: self._each(more.get(key, default))
        self.stride, self.pad, self.dil, self.more = each("stride", 1), each("pad", 0), each("dil", 1), each("more", 0)
        self.groups = more.get("groups", 1)
        self.x = (self.n, self.c, *self.size)
        mixed = (self.c, self.k // self.groups) if self.transposed else (self.k, self.c // self.groups)
        self.w = (*mixed, *self.taps)
        self.y = (self.n, self.k, *(self._out(d) for d in range(len(self.taps))))

    def _each(self, v):
        return tuple(v) if isinstance(v, tuple) else (v,) * len(self.taps)

    def _out(self, d):
        span = self.dil[d] * (self.taps[d] - 1)
        if self.transposed:
            return (self.size[d] - 1) * self.stride[d] - 2 * self.pad[d] + span + self.more[d] + 1
        return (self.size[d] + 2 * self.pad[d] - span - 1) // self.stride[d] + 1


def tasks(out, names):
    """Modules of these shapes; of other names, none."""
    pathlib.Path(out).mkdir(parents=True, exist_ok=True)
    for name in filter(SHAPES.__contains__, names or SHAPES):
        s = Shape(name)
        more = f", output_padding={s.more}" if s.transposed else ""
        arguments = f"{s.c}, {s.k}, {s.taps}, stride={s.stride}, padding={s.pad}, dilation={s.dil}, groups={s.groups}{more}"
        kind = f"Conv{'Transpose' if s.transposed else ''}{len(s.taps)}d"
        text = TASK.format(name=name, batch=s.n, size=s.size, kind=kind, arguments=arguments, channels=s.c)
        (pathlib.Path(out) / f"{name}.py").write_text(text)


def strides(shape):
    out, step = [], 1
    for size in reversed(shape):
        out.insert(0, step)
        step *= size
    return out


def describe(out):
    """What the oracle would say of a module with this one convolution, for the engineer alone."""
    for name, form in [(n, "f32") for n in SHAPES] + [(n, d) for n in HALVES for d in NARROW]:
        dtype = form.removesuffix("l")
        tensor = lambda shape: {"dtype": dtype, "shape": list(shape), "strides": strides(shape)}
        s = Shape(name)
        given, weights, result = tensor(s.x), tensor(s.w), tensor(s.y)
        for t in (given, weights, result) if form != dtype else ():
            n, *size, c = strides((t["shape"][0], *t["shape"][2:], t["shape"][1]))
            t["strides"] = [n, c, *size]
        numbers = [{"ints": list(v)} for v in (s.stride, s.pad, s.dil)]
        args = [{"node": 0}, {"node": 1}, {"none": True}, *numbers, {"value": bool(s.transposed)}]
        graph = [
            {"id": 0, "op": "input", "index": 0, **given},
            {"id": 1, "op": "input", "index": 1, **weights},
            {"id": 2, "op": "aten.convolution.default", "kwargs": {}, **result}
            | {"args": [*args, {"ints": list(s.more)}, {"value": s.groups}]},
            {"op": "output", "args": [{"node": 2}], "index": 0},
        ]
        said = {"name": "conv", "scalars": [], "class": "convolution", "graph": graph}
        said |= {"tf32": dtype == "f32", "tf32_products": False}
        said["inputs"] = [{"name": "x", "role": "input", **given}, {"name": "w", "role": "parameter", **weights}]
        said["outputs"] = [{"name": "y", "role": "output", **result}]
        (pathlib.Path(out) / f"{name}{'' if form == 'f32' else '@' + form}.json").write_text(json.dumps(said))


class Tensor(ctypes.Structure):
    """struct cutegen_tensor, which is DLPack's DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    ]

    @staticmethod
    def of(t):
        dims = ctypes.c_int64 * t.dim()
        kind = 4 if str(t.dtype) == "torch.bfloat16" else 2
        return Tensor(t.data_ptr(), (2, 0), t.dim(), kind, t.element_size() * 8, 1, dims(*t.shape), dims(*t.stride()), 0)


class Kernel:
    def __init__(self, path):
        self.call = ctypes.CDLL(str(path)).cutegen_call_kernel

    def __call__(self, x, w, y):
        import torch

        ins, outs = (Tensor * 2)(Tensor.of(x), Tensor.of(w)), (Tensor * 1)(Tensor.of(y))
        text = ctypes.create_string_buffer(400)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if self.call(ins, 2, outs, 1, None, 0, stream, text, ctypes.c_size_t(400)):
            raise RuntimeError(text.value.decode())


def keep_pool():
    """Workspace that was freed stays with the pool, as a caller's would."""
    cuda, pool = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    cuda.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0)
    cuda.cuMemPoolSetAttribute(pool, 4, ctypes.byref(ctypes.c_uint64(2**63)))


def reference(s, x, w, tf32=False, benchmark=False):
    import torch
    import torch.nn.functional as F

    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.benchmark = tf32, benchmark
    nd = len(s.taps)
    if s.transposed:
        call = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[nd - 1]
        return call(x, w, None, s.stride, s.pad, s.more, s.groups, s.dil)
    return (F.conv1d, F.conv2d, F.conv3d)[nd - 1](x, w, None, s.stride, s.pad, s.dil, s.groups)


def draw(kind, shape):
    import torch

    if kind == "uniform":
        return torch.rand(shape, device="cuda")
    x = torch.randn(shape, device="cuda")
    if kind == "wide":
        return x * torch.exp(2.5 * torch.randn(shape, device="cuda"))
    if kind == "spiky":
        return torch.where(torch.rand(shape, device="cuda") < 1e-3, x * 1000, x)
    return x * (torch.rand(shape, device="cuda") < 0.5) if kind == "half zeros" else x


def errors(s, kernels, kind, rows):
    """Of the first image, against float64."""
    import torch

    w = (torch.rand(s.w, device="cuda") * 2 - 1) / math.sqrt(s.w[1] * math.prod(s.taps))
    x = draw(kind, (1, *s.x[1:]))
    truth, size = reference(s, x.double(), w.double()), reference(s, x.double().abs(), w.double().abs())
    scale = truth.square().mean().sqrt()
    got = {"fp32": reference(s, x, w), "TF32": reference(s, x, w, True)}
    for form, kernel in kernels.items():
        got[form] = torch.full((1, *s.y[1:]), float("nan"), device="cuda")
        kernel(x, w, got[form])
    row = {"shape": s.name, "data": kind}
    for form, y in got.items():
        off = (y.double() - truth).abs()
        row[f"{form} max"] = f"{(off / size.clamp(min=1e-30)).max().item():.1e}"
        row[f"{form} rms"] = f"{(off.square().mean().sqrt() / scale).item():.2e}"
    rows.append(row)


def graphed(call):
    """As a graph, as the judge times kernels: the host's time to launch does not count, for no column."""
    import torch

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as e:
        print(f"no graph: {e}", flush=True)
        return call
    return graph.replay


def timed(call, flush):
    import torch

    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    flush.sum()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def is_narrow(form):
    return form.startswith(("f16", "bf16"))


def is_last(form):
    return form.removeprefix("b").startswith("f16l")


def last_format(s):
    import torch

    return {"memory_format": torch.channels_last if len(s.taps) == 2 else torch.channels_last_3d}


def result_of(s, n, form, dtype):
    """Where y goes: channels last where x and w are."""
    import torch

    y = torch.full((n, *s.y[1:]), float("nan"), device="cuda", dtype=dtype)
    return y.to(**last_format(s)) if is_last(form) else y


def narrowed(s, form, x, w):
    """x and w of 16 bits as the kernel gets them, and channels last for cuDNN."""
    import torch

    dtype = torch.float16 if form.startswith("f16") else torch.bfloat16
    narrow = x.to(dtype, **last_format(s)), w.to(dtype, **last_format(s))
    return narrow if is_last(form) else (x.to(dtype), w.to(dtype)), narrow


def narrow_errors(s, kernels, row):
    """Of the first image, against float64 of the same 16-bit numbers: rms relative to the result's."""
    import torch

    x, w = draw("normal", (1, *s.x[1:])), torch.randn(s.w, device="cuda") / math.sqrt(s.w[1] * math.prod(s.taps))
    for form, kernel in kernels.items():
        given, narrow = narrowed(s, form, x, w)
        y = result_of(s, 1, form, given[0].dtype)
        kernel(*given, y)
        truth = reference(s, given[0].double(), given[1].double())
        for name, got in ((form, y), (f"{form} cuDNN", reference(s, *narrow, True, True))):
            row[f"{name} rms"] = f"{((got.double() - truth).square().mean().sqrt() / truth.square().mean().sqrt()).item():.2e}"


def times(s, kernels, flush, flags):
    import torch

    x, w = torch.rand(s.x, device="cuda"), torch.randn(s.w, device="cuda") / math.sqrt(s.w[1] * math.prod(s.taps))
    y = torch.empty(s.y, device="cuda")
    calls = {"defaults": lambda: reference(s, x, w, True)}
    if "--quick" not in flags:
        calls["strict"] = lambda: reference(s, x, w)
    prefix = next((f[len("--nhwc=") :] for f in flags if f.startswith("--nhwc=")), None)
    if prefix is not None and s.name.startswith(prefix) and len(s.taps) > 1:
        form = torch.channels_last if len(s.taps) == 2 else torch.channels_last_3d
        xl, wl = x.to(memory_format=form), w.to(memory_format=form)
        calls["nhwc"] = lambda: reference(s, xl, wl, True, True)
    for form, kernel in kernels.items():
        if not is_narrow(form):
            calls[form] = lambda kernel=kernel: kernel(x, w, y)
            continue
        given, narrow = narrowed(s, form, x, w)
        to = result_of(s, s.n, form, given[0].dtype)
        calls[form] = lambda kernel=kernel, given=given, to=to: kernel(*given, to)
        if len(s.taps) > 1:
            calls[f"{'f16' if form.startswith('f16') else 'bf16'} nhwc"] = lambda narrow=narrow: reference(s, *narrow, True, True)
    seen, dead = {}, set()
    for name, call in list(calls.items()):
        try:
            if "--kernels" in flags and name in kernels:
                print(s.name, name, *kernel_times(call), flush=True)
            calls[name] = graphed(call)
            seen[name] = [timed(calls[name], flush)]
        except Exception as e:
            dead.add(name)
            print(f"{s.name} {name}: {e}", flush=True)
    for _ in range(3):
        for name, call in calls.items():
            if name not in dead:
                seen[name] += [timed(call, flush) for _ in range(1 if seen[name][0] > 20 else 3)]
    return {name: statistics.median(v[1:]) for name, v in seen.items()}


def kernel_times(call):
    """Each kernel of a call with its time in microseconds."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    kernels = [e for e in seen.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return [f"{e.name.split('(')[0]}={e.time_range.elapsed_us():.1f}" for e in kernels]


def once(lib, name, batch):
    import torch

    s = Shape(name)
    n = batch or s.n
    x, w = torch.rand((n, *s.x[1:]), device="cuda"), torch.randn(s.w, device="cuda")
    Kernel(lib)(x, w, torch.empty((n, *s.y[1:]), device="cuda"))
    torch.cuda.synchronize()


def measure(libs, out, seconds, names, flags):
    import torch

    end = time.monotonic() + seconds
    keep_pool()
    flush = torch.zeros(64 << 20, device="cuda")
    rows, wrong = [], []
    out = pathlib.Path(out)
    sources = next((pathlib.Path(f[len("--wait=") :]) for f in flags if f.startswith("--wait=")), None)
    for name in names or SHAPES:
        s = Shape(name)
        pending = [pathlib.Path(libs) / f"{k.stem}.done" for k in sources.glob(f"{name}.*.cu")] if sources else []
        while time.monotonic() < end and not all(p.exists() for p in pending):
            time.sleep(0.1)
        kernels = {path.name.split(".")[1]: Kernel(path) for path in sorted(pathlib.Path(libs).glob(f"{name}.*.so"))}
        if not kernels or time.monotonic() > end:
            print(f"{name}: not measured", flush=True)
            continue
        closely = name in CLOSELY and "--quick" not in flags
        try:
            wide = {form: kernel for form, kernel in kernels.items() if not is_narrow(form)}
            for kind in ("uniform", "normal", "wide", "spiky", "half zeros") if closely else ("uniform",):
                errors(s, wide, kind, wrong)
            narrow_errors(s, {form: kernel for form, kernel in kernels.items() if is_narrow(form)}, wrong[-1])
            rows.append({"shape": name, **{k: f"{v:.4f}" for k, v in times(s, kernels, flush, flags).items()}})
            print(rows[-1], {k: v for k, v in wrong[-1].items() if "rms" in k}, flush=True)
        except Exception as e:
            print(f"{name}: {e}", flush=True)
        torch.cuda.empty_cache()
        for file, table in (("times.csv", rows), ("errors.csv", wrong)):
            with open(out / file, "w", newline="") as f:
                keys = list(dict.fromkeys(k for r in table for k in r))
                writer = csv.DictWriter(f, keys)
                writer.writeheader()
                writer.writerows(table)
    summary(rows)


def summary(rows):
    for base in ("defaults", "strict", "nhwc", "f16 nhwc", "bf16 nhwc"):
        forms = {k for r in rows for k in r} - {"shape", "defaults", "strict"}
        narrow = base.removesuffix(" nhwc") if "f16" in base else ""
        beside = (narrow, narrow + "l")
        for form in sorted(f for f in forms if f in beside or (not narrow and "f16" not in f and "nhwc" not in f)):
            ratios = [float(r[base]) / float(r[form]) for r in rows if r.get(base) and r.get(form)]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                print(f"{form} over {base}: geomean {mean:.2f} of {len(ratios)}, least {min(ratios):.2f}")


def main():
    if sys.argv[1:2] == ["describe"] and len(sys.argv) == 3:
        return describe(sys.argv[2])
    if sys.argv[1:] == ["ten"]:
        return print(*TEN, sep="\n")
    if sys.argv[1:2] == ["tasks"] and len(sys.argv) > 2:
        return tasks(sys.argv[2], sys.argv[3:])
    if sys.argv[1:2] == ["measure"] and len(sys.argv) > 3:
        flags = {a for a in sys.argv if a.startswith("--")}
        rest = [a for a in sys.argv[4:] if a not in flags]
        return measure(sys.argv[2], sys.argv[3], float(rest[0]) if rest else 600, rest[1:], flags)
    if sys.argv[1:2] == ["once"] and len(sys.argv) in (4, 5):
        return once(sys.argv[2], sys.argv[3], int(sys.argv[4]) if len(sys.argv) == 5 else 0)
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
