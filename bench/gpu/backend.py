"""optimize() and torch.compile(backend="cutegen") on a GPU, with the wheel installed: tables against eager and Inductor.

    bench/gpu/backend.py DEADLINE [NAME...]      all of MODULES and MODELS; seconds until what is not ready is left out
    bench/gpu/backend.py --tasks DIR             the task files of all kernels, for `cutegen build --device for:H200`

One process per name. First all search for their kernels, AT_ONCE at a time, and compile with Inductor. Then each by its turn,
alone on the machine, goes the user's way: optimize() or torch.compile(), which find the kernels and decide; then eager,
Inductor and cutegen are called by turns, CALLS calls a round, synchronized, medians. Inductor: torch.compile's defaults.
fp32 is PyTorch's default arithmetic (no TF32 in products). At the end the first model is started once more.
"""

import contextlib
import fcntl
import json
import os
import statistics
import subprocess
import sys
import threading
import time

ROUNDS, CALLS, AT_ONCE = 15, 20, 4
DEVICE = os.environ.get("CUTEGEN_BENCH_DEVICE", "cuda:0")
SMALL = DEVICE == "cpu"  # a trial of this script on simt
QUICK = {"depth": 0, "tune": 0, "draws": 2}
OPTIONS = {**QUICK, "whole": False, "anchors": ["linear"], "progress": False}
MODULES = ("swish", "linear_gelu", "layer_norm")
MODELS = ("feed_forward", "attention", "geglu", "classifier", "two_towers", "checked")
ORDER = ("classifier", "feed_forward", "two_towers", "geglu", "attention", "checked", *MODULES)


def size(full):
    return max(8, full // 64) if SMALL else full


def build(name):
    """A module and its inputs."""
    import torch
    import torch.nn as nn
    import torch.nn.functional as F

    class Swish(nn.Module):
        def forward(self, x):
            return x * torch.sigmoid(x)

    class FeedForward(nn.Module):
        """The second half of a transformer's layer."""

        def __init__(self, width, hidden):
            super().__init__()
            self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, hidden), nn.Linear(hidden, width)

        def forward(self, x):
            return x + self.down(F.gelu(self.up(self.norm(x))))

    class Attention(nn.Module):
        """The first half, with a mask."""

        def __init__(self, width, heads):
            super().__init__()
            self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

    class GEGLU(nn.Module):
        def __init__(self, width, hidden):
            super().__init__()
            self.up, self.down = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)

        def forward(self, x):
            value, gate = self.up(x).chunk(2, -1)
            return self.down(value * F.gelu(gate))

    class Classifier(nn.Module):
        def __init__(self, check):
            super().__init__()
            self.check, self.first, self.last = check, nn.Linear(size(3072), size(2048)), nn.Linear(size(2048), 100)

        def forward(self, x):
            x = torch.relu(self.first(x))
            if self.check and not torch.isfinite(x).all():  # a graph break
                raise ValueError("an activation is not finite")
            return torch.log_softmax(self.last(x), -1)

    class TwoTowers(nn.Module):
        """Users and things embedded, then compared."""

        def __init__(self, width, hidden):
            super().__init__()
            self.users, self.things = nn.Embedding(10000, width), nn.Embedding(50000, width)
            self.left, self.right = (nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)) for _ in range(2))

        def forward(self, user, thing):
            a, b = self.left(self.users(user)), self.right(self.things(thing))
            return F.cosine_similarity(a, b, dim=-1)

    torch.manual_seed(0)
    module, *shapes = {
        "swish": lambda: (Swish(), (size(4096), size(8192))),
        "linear_gelu": lambda: (nn.Sequential(nn.Linear(size(1024), size(4096)), nn.GELU()), (size(4096), size(1024))),
        "layer_norm": lambda: (nn.LayerNorm(size(4096)), (size(4096), size(4096))),
        "feed_forward": lambda: (FeedForward(size(768), size(3072)), (size(4096), size(768))),
        "attention": lambda: (Attention(512, 8), (1 if SMALL else 8, size(1024), 512)),
        "geglu": lambda: (GEGLU(size(1024), size(2816)), (size(2048), size(1024))),
        "classifier": lambda: (Classifier(False), (size(2048), size(3072))),
        "checked": lambda: (Classifier(True), (size(2048), size(3072))),
        "two_towers": lambda: (TwoTowers(size(256), size(1024)), (size(8192),), (size(8192),)),
    }[name]()
    if name == "two_towers":
        return module.eval().to(DEVICE), tuple(torch.randint(0, 10000, shape, device=DEVICE) for shape in shapes)
    return module.eval().to(DEVICE), tuple(torch.randn(*shape, device=DEVICE) for shape in shapes)


def microseconds(ways, inputs):
    """Of each way per call, by turns."""
    import torch

    wait = (lambda: None) if SMALL else torch.cuda.synchronize
    calls = 1 if SMALL else CALLS
    samples = {name: [] for name in ways}
    for _ in range(3 if SMALL else ROUNDS):
        for name, run in ways.items():
            wait()
            begin = time.perf_counter()
            for _ in range(calls):
                run(*inputs)
            wait()
            samples[name].append((time.perf_counter() - begin) * 1e6 / calls)
    return {name: statistics.median(v) for name, v in samples.items()}


def error(got, want, module, inputs):
    """The rms distance to float64, and PyTorch's own."""
    import copy

    truth = copy.deepcopy(module).double()(*(x.double() if x.is_floating_point() else x for x in inputs))
    size_of = truth.square().mean().sqrt()
    return [float((a.double() - truth).square().mean().sqrt() / size_of) for a in (got, want)]


def groups_in(module, inputs):
    """The tasks that the backend will ask for, without running anything of the model."""
    import torch
    from cutegen import groups

    found = []

    def capture(graph, given):
        for group in groups.groups_of(graph, given, OPTIONS.get("anchors")):
            try:
                found.append(group.task())
            except Exception as why:  # the backend says so again
                print(f"{group.text}: {why}", file=sys.stderr)
        return graph.forward

    torch.compile(module, backend=capture)(*inputs)
    torch._dynamo.reset()
    return list({task.key: task for task in found}.values())


def tasks_of(name, module, inputs):
    """Tasks, and the settings that their kernels are kept under."""
    from cutegen import compiled, trace

    device = "simt" if SMALL else DEVICE
    if name in MODELS:
        return groups_in(module, inputs), compiled.settings_of(device, OPTIONS)
    return [trace.task_of(module, inputs)[0]], {"model": "builtin", **SETTINGS}


SETTINGS = {**QUICK, **({} if SMALL else {"compile": "none"})}


@contextlib.contextmanager
def turn():
    """One of AT_ONCE places: searches that crowd the GPU and the cores end later, all of them."""
    held = None
    while held is None:
        for k in range(AT_ONCE):
            file = open(f"{os.environ['CUTEGEN_CACHE']}/turn{k}", "w")  # noqa: SIM115
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held = file
                break
            except OSError:
                file.close()
        time.sleep(0 if held else 0.1)
    with held:
        yield


def searched(name, module, inputs):
    """A thread that searches for the kernels, while this process compiles with Inductor."""
    from cutegen import kernels

    tasks, settings = tasks_of(name, module, inputs)
    device, where = "simt" if SMALL else DEVICE, {"runs": os.path.join(kernels.cache_folder(), "runs")}
    begin = time.time()

    def tell(event):
        more = {k: event[k] for k in ("stage", "text", "build_ms", "ended") if k in event}
        print(f"[{time.time() - begin:.1f}] {event.get('event')} {more}", file=sys.stderr, flush=True)

    def search():
        for task in tasks:
            with turn():
                print(f"[{time.time() - begin:.1f}] {task.name}", file=sys.stderr, flush=True)
                kernels.find(task, device, settings, on_event=tell, **where)

    thread = threading.Thread(target=search)
    thread.start()
    return [thread]


def decided(name, module, inputs, row):
    """The user's way: optimize() or torch.compile()."""
    import cutegen
    import torch
    from cutegen import compiled

    if name in MODULES:
        fast = cutegen.optimize(module, inputs, progress=False, **SETTINGS)
        row["verdict"], row["replaced"] = fast.verdict, "all" if fast.optimized else "nothing"
        row["kernel_us"] = fast.outcomes[0].time_us
    else:
        fast = torch.compile(module, backend="cutegen", options=OPTIONS)
        fast(*inputs)
        plans = compiled.report()
        row["replaced"] = ", ".join(r for p in plans for r in p.replaced) or "nothing"
        row["verdict"] = "; ".join(f"{p.take}: {p.why}, times {({k: round(v) for k, v in p.times_us.items()})}, left {p.left}" for p in plans)
        row["take"] = "/".join(p.take for p in plans)
        row["cached"] = all(p.cached for p in plans)
    return fast


def child(name):
    """Searches, says so, waits for its turn, decides and times."""
    import torch

    begin = time.time()
    row = {"name": name}
    module, inputs = build(name)
    with torch.no_grad():
        ways = {"eager": module}
        searches = searched(name, module, inputs)
        if not SMALL and name in MODELS:
            ways["inductor"] = torch.compile(module)
            ways["inductor"](*inputs)
        for search in searches:
            search.join()
        row["searched_s"] = time.time() - begin
        print("READY", flush=True)
        sys.stdin.readline()
        begin = time.time()
        ways["cutegen"] = decided(name, module, inputs, row)
        row["decided_s"] = time.time() - begin
        row["error"], row["reference_error"] = error(ways["cutegen"](*inputs), module(*inputs), module, inputs)
        for run in ways.values():
            run(*inputs)
        row["us"] = microseconds(ways, inputs)
    print(json.dumps(row), flush=True)


def start(name):
    log = open(f"{os.environ.get('OUT', '.')}/{name}.log", "a")  # noqa: SIM115
    command = [sys.executable, os.path.abspath(__file__), "--child", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)


def finished(run):
    run.stdin.write("go\n")
    run.stdin.flush()
    return json.loads(run.stdout.readline() or "{}")


def main(deadline, names):
    end = time.time() + deadline
    children = {}
    for name in sorted(names, key=ORDER.index):
        children[name] = start(name)
        time.sleep(0.3)  # so that the first come first
    ready = {name: threading.Event() for name in names}
    for name in names:
        threading.Thread(target=lambda n=name: children[n].stdout.readline().startswith("READY") and ready[n].set(), daemon=True).start()
    while time.time() < end and not all(ready[n].is_set() or children[n].poll() is not None for n in names):
        time.sleep(0.1)
    for kind in (MODULES, MODELS):
        mine = [n for n in names if n in kind]
        if mine:
            print(f"\n{heads(kind)}", flush=True)
        for name in mine:
            if ready[name].is_set():
                show(finished(children[name]), name)
            else:
                print(f"| {name} | not ready |", flush=True)
            children[name].kill()
    first = next((n for n in names if n in MODELS and ready[n].is_set()), None)
    if first:
        again = start(first)
        again.stdout.readline()
        row = finished(again)
        print(f"\nThe second start of {first}: {row.get('decided_s', 0):.1f} s in torch.compile, from the cache: {row.get('cached')}.", flush=True)


def heads(kind):
    names = "module,eager us,cutegen us,over eager,kernel judged us,error / PyTorch's,search s"
    if kind is MODELS:
        names = "model,replaced,way,eager us,Inductor us,cutegen us,over eager,over Inductor,error / PyTorch's,search + choice s"
    columns = names.split(",")
    return f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"


def show(row, name):
    us = row.get("us")
    if not us:
        print(f"| {name} | failed |", flush=True)
        return
    mine, errors = us["cutegen"], f"{row['error']:.1e} / {row['reference_error']:.1e}"
    if name in MODULES:
        cells = [name, f"{us['eager']:.1f}", f"{mine:.1f}", f"{us['eager'] / mine:.2f}", f"{row['kernel_us'] or 0:.1f}", errors, f"{row['searched_s']:.0f}"]
    else:
        inductor = us.get("inductor", float("nan"))
        cells = [name, row["replaced"], row["take"], f"{us['eager']:.1f}", f"{inductor:.1f}", f"{mine:.1f}", f"{us['eager'] / mine:.2f}", f"{inductor / mine:.2f}"]
        cells += [errors, f"{row['searched_s']:.0f} + {row['decided_s']:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    print(f"{name}: {row['verdict']}", file=sys.stderr, flush=True)


def write_tasks(folder):
    import torch

    os.makedirs(folder, exist_ok=True)
    with torch.no_grad():
        for name in (*MODULES, *MODELS):
            module, inputs = build(name)
            for number, task in enumerate(tasks_of(name, module, inputs)[0]):
                with open(os.path.join(folder, f"{name}_{number}.py"), "w", encoding="utf-8") as file:
                    file.write(task.source)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        child(sys.argv[2])
    elif sys.argv[1] == "--tasks":
        write_tasks(sys.argv[2])
    else:
        main(float(sys.argv[1]), sys.argv[2:] or [*MODULES, *MODELS])
