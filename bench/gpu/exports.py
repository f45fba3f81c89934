"""Checks exports on a GPU: import, first call, accuracy, opcheck, torch.compile, graphs, streams, copies, gradients, time and overhead.

    python3 bench/gpu/exports.py FOLDER...               what `cutegen export` wrote; tables on stdout

Each folder is checked in this process; import times come from a process that does nothing else. ONLY="check calls citizen" names what is done (the
default: all but weights: called, in a graph and compiled, before and after the weights are changed; exit status 1: something failed), COMPILE a backend of torch.compile. LAUNCHES=FILE.so names the operator in C++ of bench/gpu/launches:
a column has its host time with as many launches. On a CPU (exports judged on simt) there are no graphs, streams and times. Errors are against float64, relative to the largest value, beside the reference's own. Cold L2: a buffer is read (flush r) or written (flush w)
before each call. Timed inputs are like the judge's: the task's, an eighth of their rows normal (what a product takes depends on its numbers, where the
GPU is limited by power).
"""

import copy
import json
import os
import pathlib
import subprocess
import sys
import time
import warnings

import torch

ONLY = os.environ.get("ONLY", "check calls citizen").split()
DRAWS = ("task", "normal", "wide", "small", "skewed")
FAILED = []
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"
torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
warnings.simplefilter("ignore")


def load(folder):
    folder = pathlib.Path(folder).resolve()
    sys.path.insert(0, str(folder.parent))
    return __import__(folder.name)


def import_seconds(folders):
    """torch first, which is not ours; then one export after the other."""
    code = "import json, sys, time, torch\nfor f in sys.argv[1:]:\n sys.path.insert(0, f.rpartition('/')[0]); t = time.time(); __import__(f.rpartition('/')[2]); print(time.time() - t)"
    folders = [str(pathlib.Path(f).resolve()) for f in folders]
    said = subprocess.run([sys.executable, "-c", code, *folders], stdout=subprocess.PIPE, check=True).stdout.split()
    return dict(zip(folders, map(float, said)))


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple, dict)):
        return [t for v in (value.values() if isinstance(value, dict) else value) for t in leaves(v)]
    return []


def distance(got, want):
    return max(((g.double() - w.double()).abs().max() / w.double().abs().max().clamp_min(1e-30)).item() for g, w in zip(leaves(got), leaves(want)))


def redrawn(t, kind):
    if kind == "task" or not t.is_floating_point():
        return t
    x = torch.randn(t.shape, device=t.device)
    x = {"normal": x, "wide": x * 30, "small": x * 1e-3, "skewed": x.exp()}[kind]
    return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).copy_(x)


def mixed(t):
    """As oracle/draw.py makes what is timed."""
    if not isinstance(t, torch.Tensor) or not t.is_floating_point() or t.dim() < 2:
        return t
    mask = torch.rand(t.shape[:-1], device=t.device) < 1 / 8
    return t.copy_(torch.where(mask.unsqueeze(-1), torch.randn(t.shape, device=t.device, dtype=t.dtype), t))


def make(m, seed=1):
    torch.manual_seed(seed)
    with torch.device(DEVICE):
        inputs = m.get_inputs()
        reference, ours = (kind(*m.get_init_inputs()).to(DEVICE) for kind in (m.Model, m.ModelNew))
    ours.load_state_dict(reference.state_dict())
    return reference, ours, [t.to(DEVICE) if isinstance(t, torch.Tensor) else t for t in inputs]


def wait():
    if GPU:
        torch.cuda.synchronize()


def give_back():
    if GPU:
        torch.cuda.empty_cache()


def median_us(call, flush="r", runs=25, hide_host=True):
    room = torch.zeros(64 << 20, device="cuda")
    pairs = []
    for _ in range(runs + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        if flush == "r":
            room.amax()
        elif flush == "w":
            room.fill_(1.0)
        if hide_host:
            torch.cuda._sleep(300_000)
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return sorted(1000 * b.elapsed_time(e) for b, e in pairs[3:])[runs // 2]


def host_us(call, calls=300):
    """Host time of a call, queued without waiting; the GPU is kept busy so that nothing waits for it."""
    call()
    torch.cuda.synchronize()
    best = 1e9
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(calls // 3):
            call()
        best = min(best, 1e6 * (time.perf_counter() - begin) / (calls // 3))
        torch.cuda.synchronize()
    return best


def attempt(what, act):
    try:
        return act()
    except Exception as err:  # one failure must not hide the rest
        print(f"#   {what}: {type(err).__name__}: {(str(err).splitlines() or [''])[0][:300]}")
        FAILED.append(what)
        return None


def captured(call):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = call()
    return graph, kept


def doubled(model, args):
    wide = copy.deepcopy(model).double()
    return wide(*[a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args])


def accuracy(reference, ours, inputs):
    worst, theirs = 0.0, 0.0
    for kind in DRAWS:
        args = [redrawn(a, kind) if isinstance(a, torch.Tensor) else a for a in inputs]
        truth = doubled(reference, args)
        worst, theirs = max(worst, distance(ours(*args), truth)), max(theirs, distance(reference(*args), truth))
    return worst, theirs


def on_side_stream(ours, inputs, want):
    side = torch.cuda.Stream()
    late = [torch.zeros_like(i) if isinstance(i, torch.Tensor) else i for i in inputs]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        for to, of in zip(late, inputs):
            if isinstance(to, torch.Tensor):
                to.copy_(of)
        kept = [t.clone() for t in leaves(ours(*late))]
    side.synchronize()
    return distance(kept, want)


def strided(t):
    return torch.stack([t, t], -1)[..., 0] if t.numel() < 1 << 27 else t.transpose(-1, -2).contiguous().transpose(-1, -2)


def shifted(t):
    room = torch.empty(t.numel() + 1, dtype=t.dtype, device=t.device)
    room[1:].copy_(t.reshape(-1))
    return room[1:].view(t.shape)


def as_reference(act, reference, ours):
    """Both give the same, or both refuse."""
    try:
        want = act(reference)
    except Exception:
        try:
            act(ours)
        except Exception:
            return "refused, as by Model"
        return "taken, refused by Model"
    return str(act(ours) == want)


def each(inputs, change):
    return [change(a) if isinstance(a, torch.Tensor) and a.dim() else a for a in inputs]


def gradients(reference, ours, inputs):
    """The largest distance between our gradients and the reference's, of inputs and parameters, for one upstream gradient."""
    found = []
    upstream = [torch.randn_like(t) for t in leaves(reference(*inputs)) if t.is_floating_point()]
    for model in (reference, ours):
        args = [a.detach().clone().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in inputs]
        model.zero_grad()
        torch.autograd.backward([t for t in leaves(model(*args)) if t.is_floating_point()], upstream)
        found.append([a.grad for a in args if isinstance(a, torch.Tensor) and a.grad is not None] + [p.grad for p in model.parameters()])
    return distance(found[1], found[0])


def check(folder, import_s):
    m = load(folder)
    record = json.loads((pathlib.Path(folder) / "record.json").read_text())
    judged = record["time"]["time_us"]
    name = pathlib.Path(folder).name
    reference, ours, inputs = make(m)
    row = [name, f"{import_s:.3f}"]
    with torch.no_grad():
        wait()
        begin = time.time()
        got = ours(*inputs)
        wait()
        row.append(f"{time.time() - begin:.3f}")
        want = reference(*inputs)
        far, theirs = attempt("accuracy", lambda: accuracy(reference, ours, inputs)) or (float("nan"),) * 2
        row.append(f"{far:.1e} / {theirs:.1e}")
        right = distance(got, want) < 3 * max(theirs, 1e-6) and far < 8 * max(theirs, 1e-6)
        row.append("ok" if right else f"{distance(got, want):.1e}")
        if not right:
            FAILED.append(name)
        side = GPU and attempt("side stream", lambda: on_side_stream(ours, inputs, got))
        graph = GPU and attempt("graph", lambda: captured(lambda: ours(*inputs)))
        graph_far = None
        if graph:
            for t in leaves(graph[1]):
                t.zero_()
            graph[0].replay()
            graph_far = distance(graph[1], got)
        row += ["-" if v is None or v is False else "same" if v == 0 else f"{v:.1e}" for v in (side, graph_far)]
        for what, change in (("non-contiguous", strided), ("misaligned", shifted)):
            v = attempt(what, lambda: distance(ours(*each(inputs, change)), got))
            row.append("-" if v is None else "same" if v == 0 else f"{v:.1e}")
        empty = [a[:0] if isinstance(a, torch.Tensor) and a.dim() else a for a in inputs]
        row.append(attempt("empty", lambda: as_reference(lambda m: [list(t.shape) for t in leaves(m(*empty))], reference, ours)) or "-")
    v = attempt("gradients", lambda: gradients(reference, ours, inputs))
    row.append("-" if v is None else f"{v:.1e}")
    print("| " + " | ".join(row) + " |", flush=True)
    if not GPU:
        return None
    with torch.no_grad():
        for t in [*inputs, *ours.parameters()]:
            mixed(t)
        reference.load_state_dict(ours.state_dict())
        times = [judged, *(attempt("time", act) or 0 for act in (
            lambda: median_us(graph[0].replay),
            lambda: median_us(lambda: ours(*inputs)),
            lambda: median_us(lambda: ours(*inputs), "w"),
            lambda: median_us(graph[0].replay, "w"),
            lambda: median_us(lambda: ours(*inputs), hide_host=False),
            lambda: median_us(lambda: reference(*inputs)),
        ))]
    return name, times


def compiled(function):
    return torch.compile(function, fullgraph=True, backend=os.environ.get("COMPILE", "inductor"))


def citizen(folder):
    m = load(folder)
    torch._dynamo.reset()
    reference, ours, inputs = make(m, 2)
    name = pathlib.Path(folder).name
    tensors = [a for a in inputs if isinstance(a, torch.Tensor)]
    held = [t for _, t in [*ours.named_parameters(), *ours.named_buffers()]]
    args = tuple(t.detach().requires_grad_() if t.is_floating_point() else t for t in tensors + held)
    checked = attempt("opcheck", lambda: sorted(set(torch.library.opcheck(m.operator, args).values())))
    with torch.no_grad():
        whole = attempt("compile", lambda: compiled(lambda *a: [t * 2 for t in leaves(ours(*a))])(*inputs))
        far = None if whole is None else distance(whole, [t * 2 for t in leaves(ours(*inputs))])
        program = attempt("torch.export", lambda: torch.export.export(ours, tuple(inputs)))
        exported = None if program is None else distance(program.module()(*inputs), ours(*inputs))
    show = ["-" if v is None else "same" if v == 0 else f"{v:.1e}" for v in (far, exported)]
    print(f"| {name} | {', '.join(checked or ['-'])} | {' | '.join(show)} |", flush=True)


def other_weights(model):
    """The same state with every number moved by up to a quarter of itself: variances stay positive."""
    torch.manual_seed(4)
    return {k: v * (0.75 + 0.5 * torch.rand_like(v)) if v.is_floating_point() else v.clone() for k, v in model.state_dict().items()}


def weights(folder):
    """Called, in a CUDA graph and inside torch.compile, then the same three after other weights were loaded; all made before that."""
    m = load(folder)
    torch._dynamo.reset()
    reference, ours, inputs = make(m, 5)
    name, row, results = pathlib.Path(folder).name, [], []
    torch.backends.cudnn.allow_tf32 = True  # PyTorch's defaults, as it was judged
    if hasattr(torch, "_dynamo"):
        torch._dynamo.config.allow_rnn = True  # without it, fullgraph=True refuses recurrent modules, Model's own too
    with torch.no_grad():
        fast = compiled(lambda *a: leaves(ours(*a)))
        attempt(f"{name}: compile", lambda: fast(*inputs))
        graph = GPU and attempt(f"{name}: graph", lambda: captured(lambda: ours(*inputs)))
        for state in (reference.state_dict(), other_weights(reference)):
            for model in (reference, ours):
                model.load_state_dict(state)
            want, got = leaves(reference(*inputs)), leaves(ours(*inputs))
            truth = leaves(doubled(reference, inputs))
            results.append(want)
            far, theirs = distance(got, truth), distance(want, truth)
            if graph:
                graph[0].replay()
            ways = {"graph": graph and distance(graph[1], got), "compile": attempt(f"{name}: compile", lambda: distance(fast(*inputs), got))}
            row += [f"{far:.1e} / {theirs:.1e}", *("-" if v is None or v is False else "same" if v == 0 else f"{v:.1e}" for v in ways.values())]
            if far > 3 * max(theirs, 1e-6) or any(v is not None and v is not False and v > 1e-6 for v in ways.values()):
                FAILED.append(name)
    torch.backends.cudnn.allow_tf32 = False
    moved = distance(results[1], results[0])
    if moved < 1e-2:  # other weights that change nothing would show nothing
        FAILED.append(f"{name}: weights")
    print(f"| {name} | {len(ours.state_dict())} | {' | '.join(row)} | {moved:.2f} |", flush=True)


def queued_us(export, tensors, made):
    """Host time of the launches alone, from C: what any operator with this launch list pays for."""
    if export.how != "native":
        return float("nan")
    case, (device, stream) = export.cases[0], (tensors[0].get_device(), torch.cuda.current_stream().cuda_stream)
    room = torch.empty(sum(w["bytes"] + 256 for w in case["workspace"]) + 1, dtype=torch.uint8, device="cuda")
    pointers = [t.data_ptr() for t in [*tensors, *leaves(made)]]
    return host_us(lambda: export.native.launch(0, device, stream, pointers, room.data_ptr()))


def in_cpp_us(small, steps):
    """Host time of an operator in C++ that allocates one tensor and launches as many kernels."""
    if not os.environ.get("LAUNCHES"):
        return float("nan")
    torch.ops.load_library(os.environ["LAUNCHES"])
    operator = torch.ops.cpp_launches.run.default
    return host_us(lambda: operator(small, steps))


def calls(folder):
    """Host time of a call beside those of operators of PyTorch's, in C++: one launch, as many launches, the whole Model."""
    m = load(folder)
    reference, ours, inputs = make(m, 3)
    tensors = [a for a in inputs if isinstance(a, torch.Tensor)] + [t for _, t in [*ours.named_parameters(), *ours.named_buffers()]]
    with torch.no_grad():
        small = torch.randn(1024, device="cuda")
        part = sys.modules[f"{m.__name__}.{m.Model.__module__.rpartition('.')[2].rpartition('__')[0]}"]
        export, native = part._export, torch.ops.aten.sigmoid.default
        steps = sum(op["op"] == "launch" or op["bytes"] > 0 for op in export.cases[0]["ops"])
        figures = [host_us(lambda: torch.sigmoid(small)), host_us(lambda: native(small)), in_cpp_us(small, steps), host_us(lambda: m.operator(*tensors)),
                   host_us(lambda: ours(*inputs)), host_us(lambda: part.run(*tensors)), queued_us(export, tensors, m.operator(*tensors)),
                   host_us(lambda: reference(*inputs), 60)]  # fmt: skip
    print(f"| {pathlib.Path(folder).name} | {export.how.partition(':')[0]} | {steps} | " + " | ".join(f"{v:.1f}" for v in figures) + " |", flush=True)


def main():
    folders = sys.argv[1:]
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name() if GPU else 'simt'}, {len(folders)} exports\n")
    if "weights" in ONLY:
        print("| export | tensors | error / Model's | graph | compiled | other weights: error / Model's | graph | compiled | result moved by |")
        print("|---|---|---|---|---|---|---|---|---|")
        for folder in folders:
            attempt(folder, lambda: weights(folder))
            give_back()
    if ONLY == ["weights"]:
        sys.exit(bool(FAILED))
    print("| export | import s | first call s | error / reference's, five draws | result | side stream | graph | non-contiguous | misaligned | empty batch | gradients |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    seconds = import_seconds(folders) if "check" in ONLY else {}
    for folder in seconds:
        rows.append(attempt(folder, lambda: check(folder, seconds[folder])))
        print(f"# {rows[-1]}", flush=True)  # should the rest be cut off
        give_back()
    print("\n| export | judged us | graph us | to judged | called us | to judged | called, flush w us | graph, flush w us | called, host time in us | Model us |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, t in filter(None, rows):
        off = [f"{100 * (v / t[0] - 1):+.1f} %" for v in t[1:3]]
        print(f"| {name} | {t[0]:.2f} | {t[1]:.2f} | {off[0]} | {t[2]:.2f} | {off[1]} | " + " | ".join(f"{v:.2f}" for v in t[3:]) + " |")
    print("\n| export | loader | steps | torch.sigmoid us | aten.sigmoid us | C++ operator us | operator us | ModelNew us | run us | steps alone us | Model us |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for folder in folders if "calls" in ONLY and GPU else ():
        attempt(folder, lambda: calls(folder))
        give_back()
    if "citizen" not in ONLY:
        sys.exit(bool(FAILED))
    print("\n| export | opcheck | compiled, fullgraph | torch.export |\n|---|---|---|---|")
    for folder in folders:
        attempt(folder, lambda: citizen(folder))
        give_back()
    sys.exit(bool(FAILED))


main()
