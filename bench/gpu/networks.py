"""Networks on a GPU beside PyTorch: times in interleaved rounds, errors against float64.

    python3 bench/gpu/networks.py TASKS KERNELS OUT.json NAME...      TASKS/NAME.py, KERNELS/NAME.so (networks.sh builds them)

Columns: ours (the exported kernel's calls, captured in a CUDA graph), eager (PyTorch's defaults), strict (no TF32),
graph (eager in a CUDA graph), compile (torch.compile with CUDA graphs; with COMPILE=1). Every column of a row comes from
one run: each round times all of them, in another order; the median counts. Peak memory is what a call adds.
"""
import ctypes
import importlib.util
import json
import os
import sys
import time

import torch

ROUNDS = 3
SECONDS = float(os.environ.get("ROW_SECONDS", "1.0"))  # of one column, all rounds


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


def wrap(t):
    n = t.dim()
    code = {torch.float32: (2, 32), torch.float16: (2, 16), torch.bfloat16: (4, 16), torch.int64: (0, 64)}[t.dtype]
    return Tensor(t.data_ptr(), (ctypes.c_int32 * 2)(2, 0), n, code[0], code[1], 1, (ctypes.c_int64 * n)(*t.shape),
                  (ctypes.c_int64 * n)(*t.stride()), 0)


def caller(path, tensors, results):
    lib = ctypes.CDLL(path)
    ins, outs = (Tensor * len(tensors))(*map(wrap, tensors)), (Tensor * len(results))(*map(wrap, results))

    def call():
        err = ctypes.create_string_buffer(500)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if lib.cutegen_call_kernel(ins, len(tensors), outs, len(results), None, 0, stream, err, 500):
            raise RuntimeError(err.value.decode())
    return call


def captured(call):
    """The same work as one CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph.replay


def time_us(call, seconds):
    torch.cuda.synchronize()
    begin = time.time()
    call()
    torch.cuda.synchronize()
    calls = max(3, min(50, int(seconds / max(time.time() - begin, 1e-5))))
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(calls)]
    for first, last in events:
        first.record()
        call()
        last.record()
    torch.cuda.synchronize()
    return [first.elapsed_time(last) * 1e3 for first, last in events]


def precise(allowed):
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = allowed


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in flat(v)]


def error_of(results, truth):
    bad = sum((a.double() - b).square().sum() for a, b in zip(results, truth))
    size = sum(b.square().sum() for b in truth)
    worst = max((a.double() - b).abs().max().item() for a, b in zip(results, truth))
    return worst, (bad / size).sqrt().item()


def peak(call):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def load(path):
    spec = importlib.util.spec_from_file_location("task", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def truth_of(task, model, inputs):
    twin = task.Model(*task.get_init_inputs()).cuda().double()
    twin.load_state_dict({k: v.double() if v.is_floating_point() else v for k, v in model.state_dict().items()})
    with torch.no_grad():
        return [t.double() for t in flat(twin(*[x.double() if x.is_floating_point() else x for x in inputs]))]


def columns(task, model, inputs, path, sizes):
    results = [torch.full(size, float("nan"), device="cuda", dtype=dtype) for size, dtype in sizes]
    held = list(model.state_dict(keep_vars=True).values())
    ours = caller(path, [*inputs, *held], results)
    found = {}
    ours()
    torch.cuda.synchronize()
    found["ours"] = (captured(ours), lambda: results, True)
    found["eager"] = (lambda: model(*inputs), lambda: flat(model(*inputs)), True)
    found["strict"] = (lambda: model(*inputs), lambda: flat(model(*inputs)), False)
    try:
        precise(True)
        found["graph"] = (captured(lambda: model(*inputs)), None, True)
    except RuntimeError as error:
        print(f"graph: {str(error).splitlines()[0]}", flush=True)
        torch.cuda.synchronize()
    if os.environ.get("COMPILE"):
        torch._dynamo.reset()
        fast = torch.compile(model, mode="reduce-overhead")
        begin = time.time()
        for _ in range(3):
            fast(*inputs)
        torch.cuda.synchronize()
        print(f"compiled in {time.time() - begin:.1f} s", flush=True)
        found["compile"] = (lambda: fast(*inputs), None, True)
    return found


def measure(name, tasks, kernels):
    task = load(f"{tasks}/{name}.py")
    torch.manual_seed(1)
    model = task.Model(*task.get_init_inputs()).cuda().eval()
    inputs = [x.cuda() for x in task.get_inputs()]
    with torch.no_grad():
        sizes = [(list(t.shape), t.dtype) for t in flat(model(*inputs))]
        found = columns(task, model, inputs, f"{kernels}/{name}.so", sizes)
        times = {column: [] for column in found}
        order = list(found)
        for _ in range(ROUNDS):
            for column in order:
                precise(found[column][2])
                times[column] += time_us(found[column][0], SECONDS / ROUNDS)
            order = order[-1:] + order[:-1]
        truth, row = truth_of(task, model, inputs), {}
        for column, (call, get, tf32) in found.items():
            precise(tf32)
            values = sorted(times[column])
            row[column] = {"us": values[len(values) // 2], "min_us": values[0], "calls": len(values)}
            if get is not None:
                if column == "ours":
                    call()
                    torch.cuda.synchronize()
                row[column]["max"], row[column]["rms"] = error_of(get(), truth)
            if column == "eager":
                row[column]["peak_bytes"] = peak(call)
            print(f"{name:12} {column:8} {row[column]['us']:10.1f} us (min {values[0]:.1f})  "
                  f"max {row[column].get('max', 0):.2e} rms {row[column].get('rms', 0):.2e}", flush=True)
    for column in row:
        if column != "ours":
            print(f"{name:12} {column}/ours {row[column]['us'] / row['ours']['us']:.2f}", flush=True)
    return row


def main():
    tasks, kernels, path = sys.argv[1:4]
    print(torch.__version__, torch.cuda.get_device_name(), "cudnn", torch.backends.cudnn.version(), flush=True)
    results = {}
    for name in sys.argv[4:]:
        begin = time.time()
        try:
            results[name] = measure(name, tasks, kernels)
        except (RuntimeError, OSError, torch.OutOfMemoryError) as error:
            print(f"{name}: {str(error).splitlines()[0]}", flush=True)
        print(f"  {time.time() - begin:.1f} s", flush=True)
        with open(path, "w") as file:
            json.dump(results, file, indent=1)
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
