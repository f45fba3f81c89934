"""optimize() and torch.compile(backend="cutegen") on a GPU, with the wheel installed: a table against eager and Inductor.

    bench/gpu/backend.py DEADLINE [NAME...]      all of MODULES and MODELS; seconds until what is not ready is left out

One process per name: kernels are built side by side, judged by turns. When all are ready, or at the deadline, each is
timed alone: eager, Inductor and cutegen in turns, CUDA events around CALLS calls, medians. Inductor: torch.compile's
defaults. fp32 is PyTorch's default arithmetic (no TF32 in products).
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time

ROUNDS, CALLS = 9, 10
DEVICE = os.environ.get("CUTEGEN_BENCH_DEVICE", "cuda:0")
SMALL = DEVICE == "cpu"  # a trial of this script on simt
BATCH, WIDE, NARROW = (32, 64, 32) if SMALL else (4096, 4096, 1024)
QUICK = {"depth": 0, "tune": 0, "draws": 2}
OPTIONS = {**QUICK, "whole": False, "anchors": ["linear", "bmm"], "progress": False}
MODULES = ("swish", "linear_gelu", "layer_norm")
MODELS = ("feed_forward", "gate", "classifier", "scores", "residual")


def build(name):
    """A module and its input."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Swish(nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(x)

    class FeedForward(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.up = nn.LayerNorm(NARROW), nn.Linear(NARROW, WIDE)

        def forward(self, x):
            return F.gelu(self.up(self.norm(x))).mean(-1)

    class Gate(nn.Module):
        def __init__(self):
            super().__init__()
            self.gate = nn.Linear(NARROW, NARROW)

        def forward(self, x):
            return torch.cumsum(x * torch.sigmoid(self.gate(x)), -1)

    class Scores(nn.Module):
        def forward(self, x):
            q, k = x.chunk(2, -1)
            return torch.softmax(torch.bmm(q.contiguous(), k.transpose(1, 2).contiguous()) * 0.125, -1)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.mix = nn.LayerNorm(NARROW), nn.Linear(NARROW, NARROW)

        def forward(self, x):
            return self.mix(torch.relu(self.norm(x))) + x

    torch.manual_seed(0)
    module, shape = {
        "swish": lambda: (Swish(), (BATCH, 2 * WIDE)),
        "linear_gelu": lambda: (nn.Sequential(nn.Linear(NARROW, WIDE), nn.GELU()), (BATCH, NARROW)),
        "layer_norm": lambda: (nn.LayerNorm(WIDE), (BATCH, WIDE)),
        "feed_forward": lambda: (FeedForward(), (BATCH, NARROW)),
        "gate": lambda: (Gate(), (BATCH, NARROW)),
        "classifier": lambda: (nn.Sequential(nn.Linear(NARROW, WIDE), nn.LogSoftmax(-1)), (BATCH, NARROW)),
        "scores": lambda: (Scores(), (2, 32, 64) if SMALL else (8, 1024, 256)),
        "residual": lambda: (Residual(), (BATCH, NARROW)),
    }[name]()
    return module.eval().to(DEVICE), torch.randn(*shape, device=DEVICE)


def microseconds(ways, x):
    """Of each way per call, by turns."""
    import torch

    samples = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, run in ways.items():
            if SMALL:
                begin = time.perf_counter()
                run(x)
                samples[name].append((time.perf_counter() - begin) * 1e6)
                continue
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda.synchronize()
            begin.record()
            for _ in range(CALLS):
                run(x)
            end.record()
            torch.cuda.synchronize()
            samples[name].append(begin.elapsed_time(end) * 1e3 / CALLS)
    return {name: statistics.median(v) for name, v in samples.items()}


def error(got, want, module, x):
    """The rms distance to float64, and PyTorch's own."""
    import copy

    truth = copy.deepcopy(module).double()(x.double())
    size = truth.square().mean().sqrt()
    return [float((a.double() - truth).square().mean().sqrt() / size) for a in (got, want)]


def search_beside(module, x):
    """Starts the search for the kernels that the backend will ask for, while this process compiles with Inductor."""
    import torch
    from cutegen import compiled, groups, kernels

    threads = []
    device = "simt" if SMALL else DEVICE

    def capture(graph, inputs):
        settings = compiled.settings_of(device, OPTIONS)
        for group in groups.groups_of(graph, inputs, OPTIONS["anchors"]):
            where = {"runs": os.path.join(kernels.cache_folder(), "runs")}
            threads.append(threading.Thread(target=kernels.find, args=(group.task(), device, settings), kwargs=where))
            threads[-1].start()
        return graph.forward

    torch.compile(module, backend=capture)(x)
    return threads


def child(name):
    """Makes everything, says so, waits for its turn, times."""
    import cutegen
    import torch
    from cutegen import compiled

    begin = time.time()
    row = {"name": name}
    module, x = build(name)
    with torch.no_grad():
        ways = {"eager": module}
        searches = search_beside(module, x) if name in MODELS else []
        if not SMALL and name in MODELS:
            ways["inductor"] = torch.compile(module)
            ways["inductor"](x)
        row["inductor_ready_s"] = time.time() - begin
        if name in MODULES:
            fast = cutegen.optimize(module, (x,), progress=False, **({} if SMALL else {"compile": "none"}), **QUICK)
            row["verdict"], row["replaced"] = fast.verdict, int(fast.optimized)
        else:
            for search in searches:
                search.join()
            row["searched_s"] = time.time() - begin
            fast = torch.compile(module, backend="cutegen", options=OPTIONS)
        ways["cutegen"] = fast
        got = fast(x)
        row["error"], row["reference_error"] = error(got, module(x), module, x)
        if name in MODELS:
            plans = compiled.report()
            row["replaced"] = sum(len(p.replaced) for p in plans)
            row["verdict"] = "; ".join(f"{p.take}: {p.why} {p.replaced} {p.left}" for p in plans)
        for run in ways.values():
            run(x)
        row["ready_s"] = time.time() - begin
        print("READY", flush=True)
        sys.stdin.readline()
        row["us"] = microseconds(ways, x)
    print(json.dumps(row), flush=True)


def main(deadline, names):
    end = time.time() + deadline
    children, ready = {}, {}
    for name in names:
        log = open(f"{os.environ.get('OUT', '.')}/{name}.log", "w")  # noqa: SIM115
        children[name] = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--child", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
        ready[name] = threading.Event()
        threading.Thread(target=lambda n=name: children[n].stdout.readline().startswith("READY") and ready[n].set(), daemon=True).start()
    while time.time() < end and not all(ready[n].is_set() or children[n].poll() is not None for n in names):
        time.sleep(0.1)
    print("| module | replaced | eager us | Inductor us | cutegen us | over eager | over Inductor | error / PyTorch's | ready s |\n|---|---|---|---|---|---|---|---|---|")
    for name in names:
        run = children[name]
        if not ready[name].is_set():
            print(f"| {name} | not ready |", flush=True)
            run.kill()
            continue
        run.stdin.write("go\n")
        run.stdin.flush()
        show(json.loads(run.stdout.readline() or "{}"), name)
    for run in children.values():
        run.kill()


def show(row, name):
    us = row.get("us") or {}
    inductor = us.get("inductor", float("nan"))
    if not us:
        print(f"| {name} | failed |", flush=True)
        return
    print(
        f"| {name} | {row['replaced']} | {us['eager']:.1f} | {inductor:.1f} | {us['cutegen']:.1f} | {us['eager'] / us['cutegen']:.2f} | "
        f"{inductor / us['cutegen']:.2f} | {row['error']:.1e} / {row['reference_error']:.1e} | {row['ready_s']:.0f} ({row.get('searched_s', 0):.0f}) |\n<!-- {row['verdict']} -->",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[2])
    else:
        main(float(sys.argv[1]), sys.argv[2:] or [*MODULES, *MODELS])
