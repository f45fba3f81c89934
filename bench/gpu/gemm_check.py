"""Accuracy and speed of an exported product beside cuBLAS fp32, on inputs of several kinds.

    python3 gemm_check.py KERNEL.so M K N [L] [form] [kinds]     form: nn nt tn tt
    python3 gemm_check.py JOBS                                   a file with such arguments, a line per job

PROFILE=1 prints the time of every kernel of a call, DT=f16 or bf16 takes narrow inputs, TIME=0 looks at errors only, SEED
draws other inputs. Beside cuBLAS fp32 stands cuBLAS with TF32, for orientation.
"""
import ctypes
import os
import sys

import torch

torch.backends.cuda.matmul.allow_tf32 = False


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


def wrap(t):
    n = t.dim()
    code = {torch.float32: (2, 32), torch.float16: (2, 16), torch.bfloat16: (4, 16)}[t.dtype]
    return Tensor(t.data_ptr(), (ctypes.c_int32 * 2)(2, 0), n, code[0], code[1], 1, (ctypes.c_int64 * n)(*t.shape),
                  (ctypes.c_int64 * n)(*t.stride()), 0)


def caller(path):
    lib = ctypes.CDLL(path)

    def call(ins, out):
        a, o = (Tensor * len(ins))(*map(wrap, ins)), (Tensor * 1)(wrap(out))
        err = ctypes.create_string_buffer(500)
        if lib.cutegen_call_kernel(a, len(ins), o, 1, None, 0, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), err, 500):
            raise RuntimeError(err.value.decode())
    return call


def draw(kind, shape):
    if ":" in kind:
        return (torch.triu if kind.startswith("upper") else torch.tril)(draw(kind.split(":")[1], shape)).contiguous()
    x = torch.rand(shape, device="cuda") if kind == "uniform" else torch.randn(shape, device="cuda")
    if kind == "wide":
        x *= torch.exp(2.5 * torch.randn(shape, device="cuda"))
    elif kind == "spiky":
        x *= torch.where(torch.rand(shape, device="cuda") < 1e-3, 1e4, 1.0)
    elif kind == "ints":
        x = torch.randint(-64, 65, shape, device="cuda").float()
    elif kind == "relu":
        x = x.relu()
    elif kind == "skewed":  # positive, a long tail
        x = x.exp()
    elif kind == "sparse":  # positive, most of A zero
        x = x.abs() * (torch.rand(shape, device="cuda") < 0.5)
    elif kind == "tiny":
        x *= 1e-39
    elif kind == "extreme":
        x *= torch.exp2(torch.randint(-50, 51, shape[:-1], device="cuda").float()).unsqueeze(-1)
    elif kind in ("inf", "nan"):
        x.view(-1)[torch.randint(0, min(x.numel(), 1 << 30), (3,))] = float(kind)
    return x


def median_ms(fn, runs=20):
    flush = torch.empty(64 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    fn()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        fn()
    times = []
    torch.cuda._sleep(int(2e8))
    for _ in range(runs):
        flush.sum()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[runs // 2]


def errors(got, truth, weight):
    bad = ((got.double() - truth).abs() / weight.clamp_min(1e-300))
    bad = torch.where(weight == 0, got.double().abs(), bad)
    return bad.max().item(), bad.square().mean().sqrt().item()


def check(job):
    call = caller(job[0])
    M, K, N = map(int, job[1:4])
    L = int(job[4]) if len(job) > 4 else 1
    form = job[5] if len(job) > 5 else "nn"
    kinds = (job[6] if len(job) > 6 else "uniform,normal,wide,spiky,ints,identity,relu,extreme,tiny,inf,nan").split(",")
    batch = (L,) if L > 1 else ()
    for kind in kinds:
        torch.manual_seed(int(os.environ.get("SEED", "3")))
        A = draw("normal" if kind == "identity" else kind, (*batch, *((M, K) if form[0] == "n" else (K, M))))
        B = torch.eye(K, N, device="cuda").expand(*batch, K, N).contiguous() if kind == "identity" else draw(kind, (*batch, *((K, N) if form[1] == "n" else (N, K))))
        dt = {"f16": torch.float16, "bf16": torch.bfloat16}.get(os.environ.get("DT"), torch.float32)
        A, B = A.to(dt), B.to(dt)
        if kind == "extreme":
            B = B / B.abs().amax(-1, keepdim=True)
        a, b = A if form[0] == "n" else A.mT, B if form[1] == "n" else B.mT
        C = torch.full((*batch, M, N), float("nan"), device="cuda", dtype=dt)
        call([A, B], C)
        ref = torch.matmul(a, b)
        torch.cuda.synchronize()
        line = f"{M}x{K}x{N} L{L} {form} {kind:8}"
        if kind in ("inf", "nan"):
            same = torch.equal(C.isnan(), ref.isnan()) and torch.equal(C.isinf(), ref.isinf()) and torch.equal(C[C.isinf()], ref[ref.isinf()])
            f = ref.isfinite()
            print(line, "non-finite places", "same" if same else "DIFFER", f"finite part off by {(C[f] - ref[f]).abs().max().item():.2g} of {ref[f].abs().max().item():.2g}")
            continue
        worst = [0.0, 0.0, 0.0, 0.0]
        sl = [()] if L == 1 else [(i,) for i in range(min(L, 2))]
        rows = max(1, min(M, (1 << 28) // N))
        for s in sl:
            x, y = (a[s], b[s]) if s else (a, b)
            yd = y.double()
            ya = yd.abs()
            for r in range(0, min(M, 4 * rows), rows):
                xd = x[r:r + rows].double()
                truth, weight = xd @ yd, xd.abs() @ ya
                e = errors((C[s] if s else C)[r:r + rows], truth, weight) + errors((ref[s] if s else ref)[r:r + rows], truth, weight)
                worst = [max(p, q) for p, q in zip(worst, e)]
                del truth, weight, xd
        note = "exact" if worst[0] == 0 else "ok" if worst[0] <= worst[2] and worst[1] <= 1.2 * worst[3] else "WORSE"
        text = f"ours {worst[0]:.2e} {worst[1]:.2e}  cuBLAS {worst[2]:.2e} {worst[3]:.2e}  {note}"
        if os.environ.get("TIME") == "0":
            print(line, text, flush=True)
            continue
        ours = median_ms(lambda: call([A, B], C))
        theirs = median_ms(lambda: torch.matmul(a, b, out=ref)) if kind.split(":")[-1] in ("uniform", "normal") else float("nan")
        torch.backends.cuda.matmul.allow_tf32 = True
        tf32 = median_ms(lambda: torch.matmul(a, b, out=ref)) if theirs == theirs else float("nan")
        torch.backends.cuda.matmul.allow_tf32 = False
        if os.environ.get("PROFILE"):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as prof:
                call([A, B], C)
                torch.cuda.synchronize()
            for e in prof.events():
                if e.device_type == torch.autograd.DeviceType.CUDA:
                    print("      ", e.name[:40], f"{e.time_range.elapsed_us():.1f} us at {e.time_range.start % 100000:.1f}")
        print(line, text, f"ours {ours:.4f} ms cuBLAS {theirs:.4f} ms ratio {theirs / ours:.2f} (with TF32 {theirs / tf32:.2f})", flush=True)


def main():
    if len(sys.argv) > 2:
        check(sys.argv[1:])
        return
    with open(sys.argv[1]) as file:
        jobs = [line.split() for line in file if line.strip()]
    for job in jobs:
        print("==", " ".join([os.path.basename(job[0])] + job[1:]), flush=True)
        try:
            check(job)
        except RuntimeError as err:  # the others may go on
            print(f"{job[0]}: {str(err).splitlines()[0]}", flush=True)


main()
