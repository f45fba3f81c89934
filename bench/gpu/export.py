"""Checks exported ModelNew modules on a GPU: same result, same speed as judged, streams, graphs, torch.compile, refusals.

    python3 bench/gpu/export.py build FOLDER           builds one module with load_inline
    python3 bench/gpu/export.py check FOLDER...        checks them all in one process; tables on stdout

A FOLDER is what `cutegen export` wrote: NAME_new.py and record.json. JUDGED=FILE: what the judge measured, {"swish": 1015.2}, where the
record is of another device; QUICK=1: without torch.compile, which comes last, in a table of its own.
"""
import importlib.util
import json
import os
import pathlib
import sys
import time

import torch

JUDGED = json.loads(pathlib.Path(os.environ["JUDGED"]).read_text()) if "JUDGED" in os.environ else {}
QUICK = "QUICK" in os.environ
CAPTURES = 5


def load(folder):
    path = next(pathlib.Path(folder).glob("*_new.py"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path.stem[:-4], module


def make(module, seed):
    """(Model, ModelNew, inputs), the same weights in both."""
    with torch.device("cuda"):
        torch.manual_seed(seed)
        inputs = [a.cuda() if isinstance(a, torch.Tensor) else a for a in module.get_inputs()]
        torch.manual_seed(seed)
        reference = module.Model(*module.get_init_inputs()).cuda()
        ours = module.ModelNew(*module.get_init_inputs()).cuda()
    ours.load_state_dict(reference.state_dict())
    return reference, ours, inputs


def median_us(call, hide_host=True):
    """Cold L2, flushed by reading; the host's own time hidden behind a wait on the device, or not."""
    flush = torch.zeros(64 << 20, device="cuda")
    torch.cuda.synchronize()
    start = time.time()
    call()
    torch.cuda.synchronize()
    runs = min(20 if QUICK else 40, max(5, int(0.1 / (time.time() - start))))
    pairs = []
    for _ in range(runs + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.amax()
        if hide_host:
            torch.cuda._sleep(1_000_000)
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    times = sorted(1000 * b.elapsed_time(e) for b, e in pairs[3:])
    return times[len(times) // 2]


def leaves(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for v in (value.values() if isinstance(value, dict) else value) for t in leaves(v)]


def distance(got, want):
    return max(((g.double() - w.double()).abs().max() / w.double().abs().max().clamp_min(1e-30)).item() for g, w in zip(leaves(got), leaves(want)))


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


def attempt(what, act):
    try:
        return act()
    except Exception as err:  # one failure must not hide the rest
        print(f"#   {what}: {type(err).__name__}: {(str(err).splitlines() or [''])[0][:200]}")
        return None


def on_side_stream(ours, inputs, want):
    side = torch.cuda.Stream()
    late = [i.clone() if isinstance(i, torch.Tensor) else i for i in inputs]
    for i in late:
        if isinstance(i, torch.Tensor):
            i.zero_()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.cuda._sleep(20_000_000)
        for to, of in zip(late, inputs):
            if isinstance(to, torch.Tensor):
                to.copy_(of)
        got = ours(*late)
        kept = [t.clone() for t in leaves(got)]
    side.synchronize()
    return distance(kept, want)


def refused(ours, inputs):
    first = next(i for i, v in enumerate(inputs) if isinstance(v, torch.Tensor))
    said = []
    for other in (inputs[first][:-1], inputs[first].double() if inputs[first].is_floating_point() else inputs[first].float()):
        try:
            ours(*inputs[:first], other, *inputs[first + 1:])
            said.append("taken")
        except ValueError:
            said.append("ValueError")
    return said


def check(folder):
    name, module = load(folder)
    record = json.loads((pathlib.Path(folder) / "record.json").read_text())
    judged = JUDGED.get(name) or record.get("time", {}).get("time_us", 0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    reference, ours, inputs = make(module, 1)
    kept = []
    with torch.no_grad():
        start = time.time()
        got = ours(*inputs)
        torch.cuda.synchronize()
        first_s = time.time() - start
        want = reference(*inputs)
        far = distance(got, want)
        stream = attempt("another stream", lambda: on_side_stream(ours, inputs, want))
        graph = attempt("CUDA graph", lambda: captured(lambda: ours(*inputs)))
        graph_far = graph_us = None
        graphs = []
        if graph:
            for t in leaves(graph[1]):
                t.fill_(0)
            graph[0].replay()
            torch.cuda.synchronize()
            graph_far = distance(graph[1], want)
            for _ in range(CAPTURES):  # where a graph's outputs lie differs from capture to capture
                graphs.append(median_us(graph[0].replay))
                kept.append(graph)
                graph = attempt("CUDA graph", lambda: captured(lambda: ours(*inputs))) or graph
            graph_us = sorted(graphs)[CAPTURES // 2]
            if max(graphs) > 1.05 * graph_us:  # slow by its place, or disturbed once?
                print("#   graphs, and again: " + ", ".join(f"{us:.2f} {median_us(g[0].replay):.2f} at {leaves(g[1])[0].data_ptr():#x}" for us, g in zip(graphs, kept)))
        eager_us = median_us(lambda: ours(*inputs))
        exposed_us = median_us(lambda: ours(*inputs), hide_host=False)
        reference_us = median_us(lambda: reference(*inputs))
        no = attempt("refusals", lambda: refused(ours, inputs))
    show = lambda v, f: "-" if v is None else format(v, f)  # noqa: E731
    off = lambda us: f"{100 * (us / judged - 1):+.1f} %" if us and judged else "-"  # noqa: E731
    print(f"| {name} | {first_s:.1f} | {far:.2g} | {show(stream, '.2g')} | {show(graph_far, '.2g')} | "
          f"{judged:.2f} | {' '.join(f'{g:.2f}' for g in graphs) or '-'} | {off(graph_us)} | {eager_us:.2f} | {off(eager_us)} | {exposed_us:.2f} | {reference_us:.2f} | {', '.join(no or [])} |", flush=True)


def compiled(folder):
    """The module inside a function that torch.compile compiles as one graph, with work of torch's own around it."""
    name, module = load(folder)
    reference, ours, inputs = make(module, 2)
    with torch.no_grad():
        start = time.time()
        got = torch.compile(lambda *a: [t * 2 if t.is_floating_point() else t for t in leaves(ours(*a))], fullgraph=True)(*inputs)
        torch.cuda.synchronize()
        took = time.time() - start
        want = [t * 2 if t.is_floating_point() else t for t in leaves(reference(*inputs))]
        print(f"| {name} | {distance(got, want):.2g} | {took:.1f} |", flush=True)


def main():
    if sys.argv[1] == "build":
        start = time.time()
        name, module = load(sys.argv[2])
        module._cutegen_extension()
        print(f"{name}: built with load_inline in {time.time() - start:.1f} s")
        return
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}; errors relative to the largest value; us with a cold L2")
    print("| kernel | first call s | error | other stream | graph | judged us | graph us (five captures) | median to judged | eager us | to judged | eager, host time in us | Model us | other shape, other dtype |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for folder in sys.argv[2:]:
        attempt(folder, lambda: check(folder))
        torch.cuda.empty_cache()
    if QUICK:
        return
    print("\n| kernel | inside torch.compile(fullgraph=True): error | s |\n|---|---|---|")
    for folder in sys.argv[2:]:
        attempt(folder, lambda: compiled(folder))


main()
