"""Layer norm over rows of 4096 and minima of rows of 4095 beside PyTorch's: `python3 layer_norm.py ./layer_norm.so [--no-compile]`.

Three ways of timing, all with cold L2 flushed by reading: "same" repeats on one input, "turns" goes round four inputs and
outputs (nothing a repetition leaves in the L2 can serve the next), "filled" is "same", but the output is overwritten before the
flush, as the judge does."""
import ctypes, sys, torch
lib = ctypes.CDLL(sys.argv[1]); lib.run_ln.restype = lib.run_min.restype = ctypes.c_char_p
flush = torch.zeros(64 << 20, device="cuda"); F = torch.nn.functional
P = lambda t: ctypes.c_void_p(t.data_ptr()); S = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
def cold(call, inputs, filled=None, runs=13):
    ts = []
    for i in range(runs + 2):
        torch.cuda._sleep(1 << 19)
        if filled is not None: filled.fill_(float("nan"))
        flush.sum()
        b, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        b.record(); call(inputs[i % len(inputs)]); e.record(); torch.cuda.synchronize()
        if i > 1: ts.append(b.elapsed_time(e) * 1e3)
    ts.sort(); return ts[runs // 2]
def row(name, call, count, wrong=""):
    print(f"| {name}{wrong} | " + " | ".join(f"{t:.1f}" for t in (cold(call, [0]), cold(call, range(count)), cold(call, [0], ys[0]))) + " |", flush=True)
torch.set_grad_enabled(False)
n, rows, K = 4096, 32768, 4
xs = [torch.randn(rows, n, device="cuda") for _ in range(K)]; ys = [torch.empty(rows, n, device="cuda") for _ in range(K)]
g, b = torch.rand(n, device="cuda"), torch.rand(n, device="cuda"); want = F.layer_norm(xs[0], (n,), g, b)
print("| layer norm (32768, 4096) | same | turns | filled |\n|---|---|---|---|")
row("copy", lambda i: ys[i].copy_(xs[i]), K)
row("eager", lambda i: F.layer_norm(xs[i], (n,), g, b), K)
fast = {}
if "--no-compile" not in sys.argv:
    fast["ln"] = torch.compile(lambda x, g, b: F.layer_norm(x, (n,), g, b)); fast["ln"](xs[0], g, b)
    row("torch.compile", lambda i: fast["ln"](xs[i], g, b), K)
w = 0
skip = range(5, 19) if "--few" in sys.argv else ()
while True:
    if w in skip: w += 1; continue
    ys[0].zero_(); name = lib.run_ln(w, P(xs[0]), P(g), P(b), P(ys[0]), n, rows, S).decode(); torch.cuda.synchronize()
    if name == "end": break
    wrong = "" if "relu" in name or (ys[0] - want).abs().max().item() < 1e-5 else " WRONG"
    row(f"{w} {name}", lambda i: lib.run_ln(w, P(xs[i]), P(g), P(b), P(ys[i]), n, rows, S), K, wrong); w += 1
if fast: row("torch.compile again", lambda i: fast["ln"](xs[i], g, b), K)
del xs, ys, want; torch.cuda.empty_cache()
if "--few" in sys.argv: sys.exit()
rows, K = 128 * 4096, 2
xs = [torch.rand(128, 4096, 4095, device="cuda") for _ in range(K)]; ys = [torch.empty(rows, device="cuda") for _ in range(K)]; want = xs[0].amin(2).flatten()
print("| min over dimension 2 of (128, 4096, 4095) | same | turns | filled |\n|---|---|---|---|")
row("eager", lambda i: torch.min(xs[i], dim=2), K)
if fast:
    fast["min"] = torch.compile(lambda x: torch.min(x, dim=2)[0]); fast["min"](xs[0])
    row("torch.compile", lambda i: fast["min"](xs[i]), K)
w = 0
while True:
    ys[0].zero_(); name = lib.run_min(w, P(xs[0]), P(ys[0]), 4095, rows, S).decode(); torch.cuda.synchronize()
    if name == "end": break
    row(f"{w} {name}", lambda i: lib.run_min(w, P(xs[i]), P(ys[i]), 4095, rows, S), K, "" if torch.equal(ys[0], want) else " WRONG"); w += 1
if fast: row("torch.compile again", lambda i: fast["min"](xs[i]), K)
