"""Times of rows.cu beside eager's, cold L2: `python3 rows.py ./rows.so`."""
import ctypes, sys, torch
lib = ctypes.CDLL(sys.argv[1]); flush = torch.zeros(64 << 20, device="cuda")
def cold(call, runs=9):
    ts = []
    for i in range(runs + 2):
        flush.sum(); b, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        b.record(); call(); e.record(); torch.cuda.synchronize()
        if i > 1: ts.append(b.elapsed_time(e) * 1e3)
    ts.sort(); return ts[runs // 2]
P = lambda t: ctypes.c_void_p(t.data_ptr()); S = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
x = torch.rand(128, 4096, 4095, device="cuda"); C = 4096 * 4095; y = torch.empty(C, device="cuda"); want = x.amax(0).flatten()
print("col limit", (x.numel() + C) * 4 / 4.46e6, "eager amax", cold(lambda: x.amax(0)))
for w in range(17):
    y.zero_(); t = cold(lambda: lib.run_col(w, P(x), P(y), 128, ctypes.c_int64(C), S)); print(f"col {w} {t:.1f} {torch.equal(y, want)}", flush=True)
rows = 128 * 4096; y = torch.empty(rows, device="cuda"); want = x.double().view(rows, 4095)[:1000].sum(1)
print("odd eager", cold(lambda: x.sum(2)))
for w in range(14):
    t = cold(lambda: lib.run_odd(w, P(x), P(y), 4095, rows, S)); print(f"odd {w} {t:.1f} {((y[:1000] - want).abs().max() / want.abs().max()).item():.1e}", flush=True)
del x, y
n, rows = 4096, 32768; x = torch.randn(rows, n, device="cuda"); g = torch.rand(n, device="cuda"); b = torch.rand(n, device="cuda"); y = torch.empty_like(x); want = torch.nn.functional.layer_norm(x, (n,), g, b)
print("ln eager", cold(lambda: torch.nn.functional.layer_norm(x, (n,), g, b)))
for r in range(2):
    for w in range(15):
        t = cold(lambda: lib.run_ln(w, P(x), P(g), P(b), P(y), n, rows, S), 15); print(f"ln {w} {t:.1f} {(y - want).abs().max().item():.1e}", flush=True)
del x, y
x = torch.rand(112, 64, 512, 512, device="cuda"); g = torch.rand(64, device="cuda"); b = torch.rand(64, device="cuda"); y = torch.empty_like(x); want = torch.nn.functional.group_norm(x[:2], 8, g, b)
for w in range(10):
    t = cold(lambda: lib.run_gn(w, P(x), P(g), P(b), P(y), 8 * 512 * 512, 112 * 8, 512 * 512, 8, 8, S), 5); print(f"gn {w} {t:.1f} {(y[:2] - want).abs().max().item():.1e}", flush=True)
