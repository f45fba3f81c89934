"""Whole networks on a GPU beside PyTorch: kernels that `cutegen build --out` wrote elsewhere, timed in interleaved rounds.

    cutegen build bench/gpu/networks/*.py --depth 0 --device for:H200 --out KERNELS     NAME.cubin, NAME.json; needs no GPU
    python3 bench/gpu/networks_whole.py bench/gpu/networks KERNELS OUT.jsonl [NAME...]  on the GPU
    python3 bench/gpu/networks_whole.py table OUT.jsonl                                 as Markdown
    python3 bench/gpu/networks_whole.py parts OUT.jsonl [NAME...]                       time by kernel

Columns of a row, all from one run: ours (the launch list in a CUDA graph), eager (PyTorch's defaults), strict (no TF32 in
convolutions and cuDNN), graph (eager in a CUDA graph), compile (torch.compile with CUDA graphs: reduce-overhead; COMPILE=0:
none), autotune (max-autotune) for names in AUTOTUNE. Kernels NAME~WORD (`--depth 2` writes them) are other forms of NAME, with
columns of their own. WARM=1: L2 is not overwritten before each call. A row is right as in
modules.py. Peak memory is what a call adds to weights and inputs. PROCESSES compile beforehand into torch's cache, for
BEFOREHAND of SECONDS; what is not ready then is left out; KEEP=FILE.tar.xz keeps the cache. Meanwhile every network is
judged, and with PARTS=1 timed by kernel (CUPTI). No row begins after SECONDS. BRANCHES=1: a column for the launches that
need nothing of each other side by side.
"""
import importlib.util
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("modules", HERE / "modules.py")
modules = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(modules)
MODES = {"compile": "reduce-overhead", "autotune": "max-autotune"}
COLUMNS = ("eager", "strict", "graph", "compile", "autotune", "branches", "overlapped")


def modes_of(name):
    wanted = ["compile"] if os.environ.get("COMPILE") != "0" else []
    return wanted + (["autotune"] if name in os.environ.get("AUTOTUNE", "").split() else [])


def beforehand(tasks, names):
    """Each mode of each network in a process of its own, PROCESSES at a time, into torch's cache; which are there."""
    limit = modules.SECONDS * modules.BEFOREHAND
    ready = set()
    left = [(n, mode) for n in names for mode in modes_of(n)]
    running = []
    while left or running:
        if time.time() - modules.BEGIN > limit:
            for child, _ in running:
                child.kill()
            print("not compiled beforehand:", *(what for _, what in running), *left, flush=True)
            break
        while left and len(running) < modules.PROCESSES:
            what = left.pop(0)
            command = [sys.executable, __file__, "compile", str(tasks), *what]
            running.append((subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), what))
        for child, what in [r for r in running if r[0].poll() is not None]:
            if child.returncode == 0:
                ready.add(what)
            print(f"  {' '.join(what)}: {time.time() - modules.BEGIN:.1f} s, exit status {child.returncode}", flush=True)
            running.remove((child, what))
        time.sleep(0.1)
    print(f"compiled beforehand after {time.time() - modules.BEGIN:.1f} s", flush=True)
    if os.environ.get("KEEP"):
        subprocess.run(["tar", "-cJf", os.environ["KEEP"], "-C", os.environ["TORCHINDUCTOR_CACHE_DIR"], "."], check=False)
    return ready


def precise(column):
    import torch

    torch.backends.cudnn.allow_tf32 = column != "strict"


def parts(call):
    """[[us, calls, kernel]], the longest first"""
    import torch
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(3):
            call()
        torch.cuda.synchronize()
    mine = [e for e in p.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA]
    return sorted(([round(e.self_device_time_total / 3, 2), e.count // 3, e.key[:110]] for e in mine), reverse=True)


def beside(name, model, inputs, ready):
    """The columns that PyTorch has: a call each"""
    import torch

    columns = {"eager": lambda: model(*inputs), "strict": lambda: model(*inputs)}
    try:
        columns["graph"] = modules.captured(lambda: model(*inputs))
    except RuntimeError:
        torch.cuda.synchronize()
    for mode in MODES:
        if (name, mode) in ready:
            columns[mode] = modules.compiled(model, inputs, MODES[mode])
    return columns


def needs(case):
    """For every operation the earlier ones that it has to wait for: those that name a buffer of its own that is no input."""
    last, found = {}, []
    for k, op in enumerate(case["ops"]):
        if op["op"] == "launch":
            named = {a["buffer"] for a in op["args"] if "buffer" in a} | {case["maps"][a["map"]]["buffer"] for a in op["args"] if "map" in a}
        else:
            named = {op["buffer"]}
        mine = {b for b in named if not b.startswith("in")}
        found.append(sorted({last[b] for b in mine if b in last}))
        last.update(dict.fromkeys(mine, k))
    return found


def branched(made, case, pointers, workspace, overlap, count=4):
    """The launch list in a CUDA graph of `count` branches: what needs nothing begins a branch beside the first one. With
    `overlap` a launch may overlap with the one before it even if it waits for others, too."""
    import torch

    driver, deps = made.driver, needs(case)
    pointers = pointers + [workspace.data_ptr() + offset for offset in made.workspaces]
    for k, (buffer, offset) in enumerate(made.sources):
        made.slots[k] = pointers[buffer] + offset
    for m in made.maps:
        modules_check(driver.encode(*m[2][0], pointers[m[0]] + m[1], *m[2][1]))
    main = torch.cuda.Stream()
    streams = [main] + [torch.cuda.Stream() for _ in range(count - 1)]
    configs = iter(made.configs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=main):
        begun = torch.cuda.Event()
        begun.record(main)
        tail, at, events, started = [-1] * count, {}, {}, {0}
        for k, step in enumerate(made.steps):
            on = {at[d] for d in deps[k]}
            s = 0 if 0 in on or len(on) > 1 or k == 0 else on.pop() if on else min(range(1, count), key=lambda s: tail[s])
            if s not in started:
                streams[s].wait_event(begun)
                started.add(s)
            others = [d for d in deps[k] if at[d] != s]
            for d in others:
                streams[s].wait_event(events[d])
            if step[0]:
                config = next(configs)
                config.stream = streams[s].cuda_stream
                follows = tail[s] >= 0 and tail[s] in deps[k] and made.steps[tail[s]][0] and (overlap or not others)
                dropped = bool(case["ops"][k].get("overlap")) and not follows
                config.attribute_count -= dropped  # it is the last one
                result = driver.launch(step[1], step[2], step[3], None)
                config.attribute_count += dropped
                modules_check(result)
            elif step[4]:
                modules_check(driver.memset(pointers[step[1]] + step[2], step[3], step[4], streams[s].cuda_stream))
            tail[s], at[k], events[k] = k, s, torch.cuda.Event()
            events[k].record(streams[s])
        for s in started - {0}:
            main.wait_stream(streams[s])
    graph.keep = streams
    return graph.replay


def modules_check(result):
    if result:
        raise RuntimeError(f"driver error {result}")


def prepare(name, tasks, kernels):
    """Model, inputs, tensors, our call and results"""
    path = tasks / f"{name}.py"
    model, inputs = modules.model_of(path)
    inputs = [x.cuda() for x in inputs]
    tensors = [*inputs, *model.state_dict(keep_vars=True).values()]
    return path, model, inputs, tensors, modules.ours(kernels, name, tensors)


def others(kernels, name):
    return sorted(p.stem for p in kernels.glob(f"{name}~*.json"))


def judge(name, tasks, kernels):
    """What is known without quiet: right or not, kernels, time by kernel"""
    import torch

    row = {"name": name}
    with torch.no_grad():
        path, model, inputs, tensors, (call, results, case, row["workspace"]) = prepare(name, tasks, kernels)
        row["launches"] = sum(op["op"] == "launch" for op in case["ops"])
        call()
        torch.cuda.synchronize()
        eager = modules.flat(model(*inputs))
        truth = modules.truth_of(path, model, inputs)
        row["rms"], row["eager_rms"], row["right"] = modules.errors(results, eager, truth)
        for other in others(kernels, name):
            again, made, form, workspace = modules.ours(kernels, other, tensors)
            again()
            torch.cuda.synchronize()
            rms, _, right = modules.errors(made, eager, truth)
            launches = sum(op["op"] == "launch" for op in form["ops"])
            found = {"rms": rms, "right": right, "launches": launches, "workspace": workspace}
            if os.environ.get("PARTS"):
                found["parts"] = parts(again)
            row.setdefault("others", {})[other[len(name) :]] = found
        if os.environ.get("PARTS"):
            row["parts"] = parts(call)
    return row


def measure(name, tasks, kernels, flush, ready, row):
    import networks
    import torch

    with torch.no_grad():
        path, model, inputs, tensors, (call, results, case, row["workspace"]) = prepare(name, tasks, kernels)
        call()
        torch.cuda.synchronize()
        size = [t.numel() * t.element_size() for t in results]
        row["bytes"] = sum(t.numel() * t.element_size() for t in tensors) + sum(size)
        model(*inputs)  # what libraries keep for good
        row["ours_peak"], row["eager_peak"] = row["workspace"] + sum(size), networks.peak(lambda: model(*inputs))
        columns = {"ours": modules.captured(call)}
        kept = []
        for other in others(kernels, name):
            again, made, _, _ = modules.ours(kernels, other, tensors)
            again()
            torch.cuda.synchronize()
            columns["ours" + other[len(name) :]] = modules.captured(again)
            kept.append((again, made))
        columns.update(beside(name, model, inputs, ready))
        if os.environ.get("BRANCHES"):
            before = [r.clone() for r in results]
            for name, overlap in (("branches", False), ("overlapped", True)):
                try:
                    columns[name] = branched(*call.made[:1], case, *call.made[1:], overlap)
                    columns[name]()
                    torch.cuda.synchronize()
                    row[name + "_equal"] = all(torch.equal(a, b) for a, b in zip(before, results))
                except RuntimeError as error:
                    print(f"  {row['name']}, {name}: {str(error).splitlines()[0][:150]}", flush=True)
                    columns.pop(name, None)
        found, order = {c: [] for c in columns}, list(columns)
        for _ in range(modules.ROUNDS):
            for column in order:
                precise(column)
                found[column] += modules.times(columns[column], flush)
            order = order[-1:] + order[:-1]
        precise("eager")
        for column, values in found.items():
            row[column] = statistics.median(values)
        if "compile" in columns:
            row["compile_kernels"] = modules.kernels_of(columns["compile"])
        row["eager_kernels"] = modules.kernels_of(columns["eager"])
    return row


def line(row):
    judged = f"rms {row['rms']:.1e}/{row['eager_rms']:.1e}{'' if row['right'] else '  WRONG'}" if "rms" in row else ""
    if "ours" not in row:
        return f"{row['name']:10} {judged}  {row.get('problem', '')}  {row['seconds']} s"
    columns = [*sorted(c for c in row if c.startswith("ours~")), *COLUMNS]
    shown = "  ".join(f"{c} {row[c]:8.1f} ({row[c] / row['ours']:.2f})" for c in columns if c in row)
    wrong = "".join(f"  {word} WRONG" for word, other in row.get("others", {}).items() if not other["right"])
    return (f"{row['name']:10} ours {row['ours']:8.1f} us  {shown}  {judged}  kernels {row['launches']}"
            f"/{row.get('compile_kernels')}/{row.get('eager_kernels')}{wrong}  peak {row['ours_peak'] / 2**20:.0f}/{row['eager_peak'] / 2**20:.0f} MiB"
            f"{'  branches DIFFER' if False in (row.get('branches_equal'), row.get('overlapped_equal')) else ''}  {row['seconds']} s")


def main():
    import torch

    tasks, kernels, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    names = sys.argv[4:] or sorted(p.stem for p in kernels.glob("*.json"))
    print(torch.__version__, torch.cuda.get_device_name(), "cudnn", torch.backends.cudnn.version(), *names, flush=True)
    ready, rows = set(), {}
    compiling = threading.Thread(target=lambda: ready.update(beforehand(tasks, names)))
    compiling.start()
    for name in names:
        rows[name] = attempt(name, lambda name=name: judge(name, tasks, kernels), out)
    compiling.join()
    flush = torch.empty(1 << (10 if os.environ.get("WARM") else 28), dtype=torch.uint8, device="cuda")
    for name in names:
        if time.time() - modules.BEGIN > modules.SECONDS:
            print(f"{name}: no time left", flush=True)
            break
        if "problem" not in rows[name]:
            attempt(name, lambda name=name: measure(name, tasks, kernels, flush, ready, rows[name]), out)


def attempt(name, do, out):
    """A row, or what went wrong: the next may do."""
    import torch

    began = time.time()
    try:
        row = do()
    except Exception as error:
        row = {"name": name, "problem": f"{type(error).__name__}: {str(error).splitlines()[0][:150] if str(error) else ''}"}
    row["seconds"] = round(time.time() - began, 1)
    with open(out, "a") as file:
        file.write(json.dumps(row) + "\n")
    print(line(row), flush=True)
    torch.cuda.empty_cache()
    return row


def rows_of(path):
    """The last row of each name; a row with times has precedence."""
    found = {}
    for row in (json.loads(text) for text in open(path)):
        if "ours" in row or "ours" not in found.get(row["name"], {}):
            found[row["name"]] = row
    return list(found.values())


def table(path):
    rows = [r for r in rows_of(path) if "ours" in r]
    print("| network | ours, us | eager | strict fp32 | eager in a graph | compile with graphs | max-autotune | branches | overlapped | kernels | compile's | peak MiB | eager's | rms error, eager's |")
    print("|" + "---|" * 14)
    for r in rows:
        cells = " | ".join(f"{r[c] / r['ours']:.2f}" if c in r else "" for c in COLUMNS)
        print(f"| {r['name']} | {r['ours']:.0f} | {cells} | {r['launches']} | {r.get('compile_kernels', '')} | {r['ours_peak'] / 2**20:.0f} | "
              f"{r['eager_peak'] / 2**20:.0f} | {r['rms']:.1e}, {r['eager_rms']:.1e}{'' if r['right'] else ' wrong'} |")
    for c in COLUMNS:
        ratios = [r[c] / r["ours"] for r in rows if c in r]
        if ratios:
            print(f"\n{c} over ours, {len(ratios)} rows: geomean {modules.geomean(ratios):.2f}, least {min(ratios):.2f}, {sum(x > 1 for x in ratios)} faster")


def show_parts(path, names):
    for r in rows_of(path):
        if "parts" not in r or (names and r["name"] not in names):
            continue
        total = math.fsum(p[0] for p in r["parts"])
        print(f"{r['name']}: {r.get('ours', 0):.0f} us in a graph, {total:.0f} us in {sum(p[1] for p in r['parts'])} kernels")
        for us, count, kernel in r["parts"]:
            print(f"  {us:9.1f} us {100 * us / total:5.1f} %  x{count:<3} {re.sub(r'[(<].*', '', kernel)}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["table"]:
        table(sys.argv[2])
    elif sys.argv[1:2] == ["parts"]:
        show_parts(sys.argv[2], sys.argv[3:])
    elif sys.argv[1:2] == ["compile"]:
        import torch as _torch

        with _torch.no_grad():
            _model, _inputs = modules.model_of(pathlib.Path(sys.argv[2]) / f"{sys.argv[3]}.py")
            modules.compiled(_model, [x.cuda() for x in _inputs], MODES[sys.argv[4]])
    elif len(sys.argv) < 4:
        sys.exit(__doc__)
    else:
        main()
