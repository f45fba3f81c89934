"""How good the predicted kernel is on a GPU: the forms that the built-in engineer tries, in its order, timed at real sizes.

    python3 bench/gpu/order.py prepare CUTEGEN LADDER OUT [PER_CLASS [SEED]]   tasks and sources into OUT; needs no GPU
    python3 bench/gpu/order.py time OUT SECONDS TIMES.jsonl [INCLUDE...]       with nvcc and a GPU: compiles and times as far as the time goes
    python3 bench/gpu/order.py table TIMES.jsonl...                            shares per class: Markdown; a later file's task counts
    python3 bench/gpu/order.py forms TASK.py INCLUDES KERNEL.cu...             with nvcc and a GPU: kernels of one task, side by side

LADDER is build/release/tests/expert/expert_ladder. Of a task there are the predicted kernel, its neighbours in the order in which
they are tried, and every step of the plain kernel's ladder. The best is the fastest of all. "first": the predicted kernel is
within 15 % of it; "five": one of the first five is within 2 % of it. Every third task of a class was not looked at when the
prediction was changed: their shares stand apart. Kernels are compared with PyTorch roughly; judging them is not the point here.
"""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

FIRST, SAME, FEW, HELD = 1.15, 1.02, 5, 3
TASK = """import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {result}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
NVCC = ["nvcc", "-std=c++17", "-O3", "-arch=sm_90a", "--expt-relaxed-constexpr", "-shared", "-Xcompiler", "-fPIC", "-DCUTEGEN_EXPORT=1"]
INCLUDES = ["cutegen/kernel.h", "cute/tensor.hpp", "cuda_fp16.h", "cutlass/arch/reg_reconfig.h", "cutlass/numeric_conversion.h", "cute/arch/cluster_sm90.hpp"]


def rows(rng):
    width = rng.choice((768, 1000, 1024, 4096, 5000, 8192, 16384, 30000, 65536, 131072, 393216))
    return [f"torch.randn({(1 << rng.choice((26, 27))) // width}, {width}){rng.choice(('', '', '.half()'))}"]


def columns(rng):
    width = rng.choice((64, 300, 1024, 4096, 16384, 65536))
    return [f"torch.randn({(1 << rng.choice((26, 27))) // width}, {width})"]


def image(rng):
    size = rng.choice((56, 111, 112, 224, 256, 512))
    return [f"torch.randn({(1 << 26) // (64 * size * size) + 1}, 64, {size}, {size}){rng.choice(('', '', '.half()'))}"]


def product(rng):
    m, n, k = rng.choice((8, 64, 128, 512, 1000, 2048, 4096)), rng.choice((1024, 2048, 4096, 8192)), rng.choice((512, 1024, 4096, 8192))
    half = rng.choice(("", ".half()"))
    return [f"torch.randn({m}, {k}){half}", f"torch.randn({n}, {k}){half}"]


CLASSES = {
    "pointwise": (("x * torch.sigmoid(x)", "torch.tanh(x) + x", "F.gelu(x)", "F.relu(x) * 2.0", "torch.exp(-x * x)", "F.softplus(x)"), rows),
    "softmax": (("torch.softmax(x, 1)", "torch.log_softmax(x, 1)", "torch.softmax(x * 0.5, 1)"), rows),
    "norms": (("F.layer_norm(x, x.shape[1:])", "x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)", "F.normalize(x, dim=1)"), rows),
    "reductions": (("x.sum(1)", "x.mean(1)", "x.amax(1)", "x.argmax(1)", "torch.logsumexp(x, 1)"), rows),
    "columns": (("x.sum(0)", "x.amax(0)", "torch.softmax(x, 0)", "x.mean(0)"), columns),
    "scans": (("torch.cumsum(x, 1)", "torch.cumprod(torch.sigmoid(x) + 0.5, 1)", "torch.cumsum(x, 0)"), rows),
    "pools": (("F.max_pool2d(x, 2)", "F.avg_pool2d(x, 3, 2, 1)", "F.max_pool2d(x, 3, 1, 1)", "F.avg_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)", "F.max_pool2d(x, 4, 1, 1)"), image),
    "products": (("F.linear(x, y)", "F.relu(F.linear(x, y))", "F.linear(x, y) * 2.0"), product),
}


def bundle(sources):
    """One file with all of them: cutegen_which tells which plan is run."""
    text = "".join(f"#include <{name}>\n" for name in INCLUDES) + 'extern "C" {\nint cutegen_which = 0;\n}\n'
    for i, source in enumerate(sources):
        space = f"namespace form_{i} {{\n"
        source = re.sub(r"#include <.*\n", "", source)
        # A specialisation stands outside: what it is of is in the namespace.
        source = re.sub(r"template <>\nstruct cute::(\w+)<(\w+)>(.*)\n", rf"}}\ntemplate <>\nstruct cute::\1<form_{i}::\2>\3\n" + space, source)
        text += space + source + "\n}\n"
    cases = "".join(f"    case {i}: return form_{i}::cutegen_plan(call);\n" for i in range(len(sources)))
    return text + f"static int cutegen_plan(struct cutegen_call *call)\n{{\n    switch (cutegen_which) {{\n{cases}    }}\n    return 1;\n}}\n"


def forms(ladder, description, work):
    """The sources of a task: [(words, source)], as they are tried; then the steps of the plain kernel's ladder."""
    found, order = {}, []
    for mode in (["neighbours"], []):
        folder = pathlib.Path(work, mode[0] if mode else "climb")
        run = subprocess.run([ladder, str(description), str(folder), "sm_90a", *mode], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{description}: {run.stderr}")
        for line in run.stdout.splitlines():
            name, words = re.match(r"(\S+ \d+): (?:CHANGE: )?(.*)", line).groups()
            path = folder / (name.replace(" ", ".") + ".cu")
            if path.exists() and path.read_text() not in found:
                found[path.read_text()] = len(order)
                order.append({"words": words, "tried": len(order) if mode else None})
    return order, list(found)


def prepare(cutegen, ladder, out, per_class=8, seed=2):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    for number in range(int(per_class)):  # by turns: an early end leaves all classes alike
        for kind, (results, inputs) in CLASSES.items():
            rng = random.Random(f"{seed} {kind} {number}")
            made, name = inputs(rng), f"{kind}_{number}"
            result = results[number % len(results)]
            path = out / f"{name}.py"
            path.write_text(TASK.format(arguments=", ".join("xy"[: len(made)]), result=result, inputs=", ".join(made)))
            if not (out / f"{name}.json").exists():
                run = subprocess.run([cutegen, "describe", str(path), "--device", "for:H200", "--json"], capture_output=True, text=True)
                if run.returncode:
                    print(f"{name}: {(run.stderr or run.stdout).strip()[-300:]}", flush=True)
                    continue
                (out / f"{name}.json").write_text(run.stdout)
            order, sources = forms(ladder, out / f"{name}.json", out / "forms" / name)
            (out / f"{name}.cu").write_text(bundle(sources))
            (out / f"{name}.forms").write_text(json.dumps({"name": name, "class": kind, "held": number % HELD == HELD - 1, "result": result,
                                                           "inputs": made, "forms": order}))
            print(f"{name}: {len(sources)} forms of {result} on {', '.join(made)}", flush=True)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


def wrap(t):
    import torch

    n, code = t.dim(), {torch.float32: (2, 32), torch.float16: (2, 16), torch.bfloat16: (4, 16), torch.int64: (0, 64)}[t.dtype]
    return Tensor(t.data_ptr(), (ctypes.c_int32 * 2)(2, 0), n, code[0], code[1], 1, (ctypes.c_int64 * max(n, 1))(*t.shape),
                  (ctypes.c_int64 * max(n, 1))(*t.stride()), 0)


def keep_workspace():
    """What kernels free stays with the process: an allocation must not stand between two launches."""
    driver, pool = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    if driver.cuDeviceGetDefaultMemPool(ctypes.byref(pool), 0) or driver.cuMemPoolSetAttribute(pool, 4, ctypes.byref(ctypes.c_uint64(~0 & (1 << 64) - 1))):
        raise SystemExit("the driver's memory pool cannot be set")


def microseconds(call, cold, repeats=7):
    import torch

    call()
    taken = []
    for _ in range(repeats):
        cold.zero_()  # the L2 holds something else
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(100000)  # the launches are queued before the first of them runs
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        taken.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(taken)


def near(got, want):
    import torch

    if not got.is_floating_point():
        return bool((got == want).float().mean() > 0.999)
    got, want = got.float(), want.float()
    both = torch.isfinite(want) & torch.isfinite(got)
    return bool(((got - want).abs() <= 1e-2 * want.abs() + 1e-2)[both].float().mean() > 0.999) and bool(both.any())


def measure(library, task, source, cold):
    import torch

    keep_workspace()
    scope = {}
    exec(source, scope)
    torch.manual_seed(1)
    with torch.device("cuda"):
        inputs = scope["get_inputs"]()
    want = scope["Model"]().forward(*inputs)
    out, lib = torch.empty_like(want), ctypes.CDLL(str(library))
    ins, outs = (Tensor * len(inputs))(*map(wrap, inputs)), (Tensor * 1)(wrap(out))

    def call():
        error = ctypes.create_string_buffer(500)
        if lib.cutegen_call_kernel(ins, len(inputs), outs, 1, None, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), error, 500):
            raise RuntimeError(error.value.decode())
    task["eager_us"] = microseconds(lambda: scope["Model"]().forward(*inputs), cold)
    for i, form in enumerate(task["forms"]):
        ctypes.c_int.in_dll(lib, "cutegen_which").value = i
        try:
            out.fill_(float("nan") if out.is_floating_point() else -1)
            form["us"] = microseconds(call, cold)
            form["near"] = near(out, want)
        except RuntimeError as error:
            form["error"] = str(error)[:200]
    return task


def compile_one(path, includes, end):
    library = path.with_suffix(".so")
    begin = time.time()
    if library.exists():
        return path, 0, ""
    try:
        run = subprocess.run([*NVCC, *[f"-I{d}" for d in includes], "-o", str(library), str(path), "-lcuda"], capture_output=True, text=True,
                             timeout=max(1, end - time.time()))
        return path, time.time() - begin, run.stderr if run.returncode else ""
    except subprocess.TimeoutExpired:
        return path, time.time() - begin, "out of time"


def time_all(out, seconds, times, includes):
    import torch

    end = time.time() + float(seconds)
    cold = torch.empty(64 << 20, device="cuda")
    paths = sorted(pathlib.Path(out).glob("*.forms"), key=lambda p: (int(p.stem.split("_")[1]), p.stem))
    with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 2) - 1)) as pool, open(times, "a") as file:
        for job in concurrent.futures.as_completed([pool.submit(compile_one, p.with_suffix(".cu"), includes, end) for p in paths]):
            path, took, error = job.result()
            if error or time.time() > end:
                print(f"{path.stem}: not built in {took:.0f} s: {error.strip()[:200]}", flush=True)
                continue
            task = measure(path.with_suffix(".so"), json.loads(path.with_suffix(".forms").read_text()), path.with_suffix(".py").read_text(), cold)
            torch.cuda.empty_cache()
            file.write(json.dumps(task) + "\n")
            file.flush()
            print(line(task) + f" built in {took:.0f} s", flush=True)


def right(task):
    return [f for f in task["forms"] if f.get("near") and "us" in f]


def judged(task):
    """(first within 15 %, best among five, predicted / best)"""
    forms_ = right(task)
    if not forms_:
        return None
    best = min(f["us"] for f in forms_)
    tried = [f["us"] for f in forms_ if f["tried"] is not None][:FEW]
    return (tried[0] <= FIRST * best, min(tried) <= SAME * best, tried[0] / best) if tried else None


def line(task):
    shares, wrong = judged(task), [f["words"][:40] + ": " + f.get("error", "differs") for f in task["forms"] if not f.get("near")]
    best = min(right(task), key=lambda f: f["us"], default=None)
    return (f"{task['name']:14} {task['result']:40} eager {task['eager_us']:8.1f}  first / best {shares[2] if shares else 0:5.2f} "
            f"{'five' if shares and shares[1] else '    '} best: {best['words'][:60] if best else 'none'} {best['us'] if best else 0:.1f} {wrong or ''}")


def table(paths):
    tasks = {}
    for path in paths:
        for text in open(path):
            task = json.loads(text)
            tasks[task["name"]] = task
    print("| class | tasks | first within 15 % | best among five | forms | held back: tasks | first | five |")
    print("|---|---|---|---|---|---|---|---|")
    for kind in [*CLASSES, "all"]:
        some = [(t, judged(t)) for t in tasks.values() if kind in ("all", t["class"])]
        some = [(t, j) for t, j in some if j]
        if some:
            held = [j for t, j in some if t["held"]]
            share = lambda js, i: f"{100 * sum(j[i] for j in js) / len(js):.0f} %" if js else "-"  # noqa: E731
            every = [j for _, j in some]
            forms_ = statistics.mean(len(t["forms"]) for t, _ in some)
            print(f"| {kind} | {len(some)} | {share(every, 0)} | {share(every, 1)} | {forms_:.1f} | {len(held)} | {share(held, 0)} | {share(held, 1)} |")


def forms_of(task, includes, kernels):
    """Times these kernels, in files, beside PyTorch. INCLUDES: folders of cutegen's headers and CUTLASS', with a colon between."""
    import tempfile

    import torch

    path = pathlib.Path(tempfile.mkdtemp(), pathlib.Path(task).stem + ".cu")
    path.write_text(bundle([pathlib.Path(k).read_text() for k in kernels]))
    _, _, error = compile_one(path, includes.split(":"), time.time() + 600)
    if error:
        raise SystemExit(error)
    what = {"name": path.stem, "result": "", "forms": [{"words": k, "tried": None} for k in kernels]}
    done = measure(path.with_suffix(".so"), what, pathlib.Path(task).read_text(), torch.empty(64 << 20, device="cuda"))
    print(f"{path.stem}: PyTorch {done['eager_us']:.1f} us")
    for form in done["forms"]:
        print(f"  {form['words']:40} {form.get('us', 0):9.1f} us {'' if form.get('near') else form.get('error', 'differs')}")


def main():
    what, *words = sys.argv[1:]
    if what == "prepare":
        prepare(*words)
    elif what == "forms":
        forms_of(words[0], words[1], words[2:])
    elif what == "time":
        time_all(words[0], words[1], words[2], words[3:])
    else:
        table(words)


if __name__ == "__main__":
    main()
