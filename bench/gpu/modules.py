"""Modules on a GPU beside PyTorch: kernels that `cutegen build --out` wrote elsewhere, timed in interleaved rounds.

    python3 bench/gpu/modules_tasks.py TASKS
    cutegen build TASKS/*.py --depth 0 --device for:H200 --out KERNELS      NAME.cubin, NAME.json; needs no GPU
    python3 bench/gpu/modules.py TASKS KERNELS OUT.jsonl [NAME...]          on the GPU
    python3 bench/gpu/modules.py table OUT.jsonl                            as Markdown
    python3 bench/gpu/modules.py others OUT.jsonl                           kernels NAME~WORD beside NAME, as Markdown
    python3 bench/gpu/modules.py workspace KERNELS                          peak workspace beside the bound of the order

Columns of a row, all from one run: ours (the launch list in a CUDA graph), eager (PyTorch's defaults), graph (eager in a CUDA
graph), compile (torch.compile; COMPILE=0: none; its code is compiled by PROCESSES beforehand), autotune for names in AUTOTUNE.
L2 is overwritten before each call. A row is right where its error against float64 is at most that of eager, times 8, and where
integers are equal but for ties. Kernels NAME~WORD are others for the same task: columns of their own. The floor is what inputs
and outputs take at BANDWIDTH. SECONDS: no row begins after that. EVAL=0: a model is used as its task makes it.
"""
import importlib.util
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROUNDS, CALLS = 3, int(os.environ.get("CALLS", "6"))
BANDWIDTH = float(os.environ.get("BANDWIDTH", "4.35e6"))  # bytes per us: what a copy reaches on an H200
SECONDS = float(os.environ.get("SECONDS", "150"))
PROCESSES = int(os.environ.get("PROCESSES", "12"))
BEFOREHAND = float(os.environ.get("BEFOREHAND", "0.5"))  # of SECONDS, for torch.compile
BEGIN = time.time()
DTYPES = {"f32": "float32", "f16": "float16", "bf16": "bfloat16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u8": "uint8", "bool": "bool"}


def load(path, name="task"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def flat(value):
    return [value] if not isinstance(value, (tuple, list)) else [t for v in value for t in flat(v)]


# ---- where there is a GPU ---------------------------------------------------------------------------------


def model_of(path):
    import torch

    task = load(path)
    torch.manual_seed(1)
    with torch.device("cuda"):
        return as_used(task.Model(*task.get_init_inputs())), task.get_inputs()


def as_used(model):
    return model if os.environ.get("EVAL") == "0" else model.eval()


def tensors_of(model, inputs):
    return [v for v in [*inputs, *model.state_dict(keep_vars=True).values()] if hasattr(v, "data_ptr")]


def ours(kernels, name, tensors):
    """(call, outputs)"""
    import torch

    launcher = load(pathlib.Path(__file__).resolve().parent.joinpath(os.environ.get("LAUNCHER", "../../oracle/exported/launcher.py")), "launcher")
    case = json.loads((kernels / f"{name}.json").read_text())
    module = launcher.Module(launcher.open_driver(), 0, (kernels / f"{name}.cubin").read_bytes())
    made = launcher.Launcher(module, case)
    for entry, tensor in zip(case["inputs"], tensors):
        if list(tensor.shape) != entry["shape"]:
            raise RuntimeError(f"{entry['name']}: {list(tensor.shape)}, built for {entry['shape']}")
    results = [torch.empty_strided(o["shape"], o["strides"], dtype=getattr(torch, DTYPES[o["dtype"]]), device="cuda") for o in case["outputs"]]
    for r in results:
        r.fill_(float("nan") if r.is_floating_point() else 0)
    workspace = torch.empty(max(made.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
    pointers = [t.data_ptr() for t in [*tensors, *results]]

    def call():
        made.launch(torch.cuda.current_stream().cuda_stream, pointers, workspace.data_ptr())

    call.keep = (tensors, workspace, results)  # a captured launch has their addresses
    call.made = (made, pointers, workspace)
    return call, results, case, made.workspace_bytes


def captured(call):
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def times(call, flush):
    import torch

    events = []
    for _ in range(CALLS):
        flush.zero_()
        first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        first.record()
        call()
        last.record()
        events.append((first, last))
    torch.cuda.synchronize()
    return [a.elapsed_time(b) * 1e3 for a, b in events]


def errors(results, eager, truth):
    """(rms of ours, rms of eager, right)"""
    worst, own, right = 0.0, 0.0, True
    for a, b, t in zip(results, eager, truth):
        if not a.is_floating_point():
            right = right and (a != b).double().mean().item() < 1e-3
            continue
        size = t.double().square().mean().sqrt().item() + 1e-30
        ok = t.isfinite()
        mine, theirs = (((x.double() - t)[ok]).square().mean().sqrt().item() / size for x in (a, b))
        right = right and mine <= 8 * theirs + 1e-6 and bool((a.isfinite() == ok).all())
        worst, own = max(worst, mine if mine == mine else math.inf), max(own, theirs)
    return worst, own, right


def truth_of(path, model, inputs):
    import torch

    task = load(path)
    with torch.device("cuda"):
        twin = as_used(task.Model(*task.get_init_inputs())).double()
    twin.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in model.state_dict().items()})
    return [t.double() if t.is_floating_point() else t for t in flat(twin(*[x.double() if hasattr(x, "data_ptr") and x.is_floating_point() else x for x in inputs]))]


def compiled(model, inputs, mode=None):
    import torch

    torch._dynamo.reset()
    fast = torch.compile(model, mode=mode, dynamic=False)
    for _ in range(2):
        fast(*inputs)
    torch.cuda.synchronize()
    return lambda: fast(*inputs)


def measure(name, tasks, kernels, flush):
    import torch

    path = tasks / f"{name}.py"
    model, inputs = model_of(path)
    row = {"name": name}
    with torch.no_grad():
        eager = flat(model(*inputs))
        call, results, case, row["workspace"] = ours(kernels, name, tensors_of(model, inputs))
        row["launches"] = sum(op["op"] == "launch" for op in case["ops"])
        call()
        torch.cuda.synchronize()
        row["rms"], row["eager_rms"], row["right"] = errors(results, eager, truth := truth_of(path, model, inputs))
        row["bytes"] = sum(t.numel() * t.element_size() for t in [*tensors_of(model, inputs), *results])
        more = {}
        for other in sorted(kernels.glob(f"{name}~*.json")):
            again, made, _, _ = ours(kernels, other.stem, tensors_of(model, inputs))
            again()
            torch.cuda.synchronize()
            _, _, right = errors(made, eager, truth)
            more["ours" + other.stem[len(name) :] + ("" if right else " WRONG")] = captured(again)
        del eager, truth
        columns = {"ours": captured(call), **more, "eager": lambda: model(*inputs)}
        try:
            columns["graph"] = captured(lambda: model(*inputs))
        except RuntimeError:
            torch.cuda.synchronize()
        if os.environ.get("COMPILE") != "0":
            columns["compile"] = compiled(model, inputs)
        if name in os.environ.get("AUTOTUNE", "").split():
            columns["autotune"] = compiled(model, inputs, "max-autotune")
        found, order = {c: [] for c in columns}, list(columns)
        for _ in range(ROUNDS):
            for column in order:
                found[column] += times(columns[column], flush)
            order = order[-1:] + order[:-1]
        for column, values in found.items():
            row[column] = statistics.median(values)
        if "compile" in columns and os.environ.get("COUNT"):
            row["compile_kernels"] = kernels_of(columns["compile"])
    return row


def kernels_of(call):
    """Kernels of a call, as the profiler counts them; None: it does not run here."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    try:
        with profile(activities=[ProfilerActivity.CUDA]) as p:
            call()
            torch.cuda.synchronize()
        mine = [e for e in p.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA]  # not calls of the runtime
        return sum(e.count for e in mine if "mem" not in e.key.lower()[:3])
    except RuntimeError:
        return None


def compile_beforehand(tasks, names):
    """In processes of their own, into torch's cache."""
    shares = [names[k::PROCESSES] for k in range(PROCESSES)]
    running = [subprocess.Popen([sys.executable, __file__, "compile", str(tasks), *share], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for share in shares if share]
    for child in running:
        try:
            child.wait(max(1, SECONDS * BEFOREHAND - (time.time() - BEGIN)))
        except subprocess.TimeoutExpired:
            child.kill()
    print(f"compiled beforehand after {time.time() - BEGIN:.1f} s", flush=True)


def main():
    import torch

    tasks, kernels, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    names = [n for n in sys.argv[4:] or sorted(p.stem for p in kernels.glob("*.json") if "~" not in p.stem) if (kernels / f"{n}.json").exists()]
    print(torch.__version__, torch.cuda.get_device_name(), f"{len(names)} tasks", flush=True)
    if os.environ.get("COMPILE") != "0":
        compile_beforehand(tasks, names)
    flush = torch.empty(1 << 28, dtype=torch.uint8, device="cuda")
    with open(out, "a") as file:
        for name in names:
            if time.time() - BEGIN > SECONDS:
                print(f"{name}: no time left", flush=True)
                break
            began = time.time()
            try:
                row = measure(name, tasks, kernels, flush)
            except Exception as error:  # the next row may do
                row = {"name": name, "problem": f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"}
            row["seconds"] = round(time.time() - began, 1)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(line(row), flush=True)
            torch.cuda.empty_cache()


# ---- anywhere ---------------------------------------------------------------------------------------------


def line(row):
    if "ours" not in row:
        return f"{row['name']:18} {row.get('problem', '')}"
    shown = [*(c for c in row if c.startswith("ours~")), "eager", "graph", "compile", "autotune"]
    columns = "  ".join(f"{c} {row[c]:9.1f} ({row[c] / row['ours']:.2f})" for c in shown if c in row)
    verdict = "" if row["right"] else "  WRONG"
    return f"{row['name']:18} ours {row['ours']:9.1f} us  {columns}  floor {100 * row['bytes'] / BANDWIDTH / row['ours']:3.0f} %  rms {row['rms']:.1e}/{row['eager_rms']:.1e}  {row['launches']} launches{verdict}  {row['seconds']} s"


def geomean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(path):
    rows = [json.loads(text) for text in open(path)]
    rows = list({r["name"]: r for r in rows}.values())
    for title, letter in (("Chains with a product", "p"), ("Chains with a convolution", "v"), ("Chains with neither", "c"), ("Single operators", "g")):
        mine = [r for r in rows if r["name"][0] == letter]
        good = [r for r in mine if "ours" in r]
        if not mine:
            continue
        print(f"## {title}\n\n| task | us | eager | graph | compile | autotune | of the memory floor | kernels (compile) | error, eager's | |\n|---|---|---|---|---|---|---|---|---|---|")
        for r in mine:
            if "ours" not in r:
                print(f"| {r['name']} | | | | | | | | | {r.get('problem')} |")
                continue
            cells = " | ".join(f"{r[c] / r['ours']:.2f}" if c in r else "" for c in ("eager", "graph", "compile", "autotune"))
            print(f"| {r['name']} | {r['ours']:.1f} | {cells} | {100 * r['bytes'] / BANDWIDTH / r['ours']:.0f} % | {r['launches']} ({r.get('compile_kernels', '')}) | {r['rms']:.1e}, {r['eager_rms']:.1e} | {'' if r['right'] else 'wrong'} |")
        for c in ("eager", "graph", "compile", "autotune"):
            ratios = [r[c] / r["ours"] for r in good if c in r]
            if ratios:
                print(f"\n{c} over ours, {len(ratios)} rows: geomean {geomean(ratios):.2f}, least {min(ratios):.2f}")
        print()


def others(path):
    """Times of NAME over those of NAME~WORD: above 1, the other one is faster."""
    rows = {r["name"]: r for r in (json.loads(text) for text in open(path))}.values()
    found = {}
    print("| task | launches | us | other | other's us | ratio | eager in a graph, us | |\n|---|---|---|---|---|---|---|---|")
    for r in rows:
        if "ours" not in r:
            print(f"| {r['name']} | | | | | | | {r.get('problem')} |")
        for column in [c for c in r if c.startswith("ours~")]:
            word, _, wrong = column[len("ours~"):].partition(" ")
            wrong = wrong or ("" if r["right"] else "wrong, both")
            if not wrong:
                found.setdefault(word, []).append(r["ours"] / r[column])
            graph = f"{r['graph']:.1f}" if "graph" in r else ""
            print(f"| {r['name']} | {r['launches']} | {r['ours']:.1f} | {word} | {r[column]:.1f} | {r['ours'] / r[column]:.3f} | {graph} | {wrong} |")
    for word, ratios in found.items():
        print(f"\n{word}, {len(ratios)} rows: geomean {geomean(ratios):.3f}, least {min(ratios):.3f}, most {max(ratios):.3f}, {sum(x > 1 for x in ratios)} faster")


def workspace(folder):
    """The bytes that are asked for, and those that live at the same time at most, by the launches that name them."""
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        case = json.loads(path.read_text())
        first, last = {}, {}
        for k, op in enumerate(case["ops"]):
            named = [op["buffer"]] if "buffer" in op else [a["buffer"] for a in op["args"] if "buffer" in a] + [case["maps"][a["map"]]["buffer"] for a in op["args"] if "map" in a]
            for buffer in named:
                if buffer.startswith("ws"):
                    first.setdefault(buffer, k)
                    last[buffer] = k
        size = {f"ws{k}": w["bytes"] for k, w in enumerate(case["workspace"])}
        bound = max((sum(size[b] for b in first if first[b] <= k <= last[b]) for k in range(len(case["ops"]))), default=0)
        asked = sum(size.values())
        print(f"{path.stem:18} {asked:12} bytes, bound {bound:12}, {asked / bound if bound else 1:.2f}")


def command():
    if sys.argv[1:2] == ["table"]:
        table(sys.argv[2])
    elif sys.argv[1:2] == ["others"]:
        others(sys.argv[2])
    elif sys.argv[1:2] == ["workspace"]:
        workspace(sys.argv[2])
    elif sys.argv[1:2] == ["compile"]:
        import torch as _torch

        with _torch.no_grad():
            for _name in sys.argv[3:]:
                try:
                    _what = model_of(pathlib.Path(sys.argv[2]) / f"{_name}.py")
                    compiled(*_what)
                    if _name in os.environ.get("AUTOTUNE", "").split():
                        compiled(*_what, "max-autotune")
                except Exception as _error:
                    print(_name, _error)
    elif len(sys.argv) < 4:
        sys.exit(__doc__)
    else:
        main()


if __name__ == "__main__":
    command()
