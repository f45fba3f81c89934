"""Times of hints.cu beside eager's, cold L2: `python3 hints.py ./hints.so`."""
import ctypes, sys, torch
lib = ctypes.CDLL(sys.argv[1]); flush = torch.zeros(64 << 20, device="cuda")
def cold(call, runs=9):
    ts = []
    for i in range(runs + 2):
        torch.cuda._sleep(1 << 19); flush.sum(); b, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        b.record(); call(); e.record(); torch.cuda.synchronize()
        if i > 1: ts.append(b.elapsed_time(e) * 1e3)
    ts.sort(); return ts[runs // 2]
P = lambda t: ctypes.c_void_p(t.data_ptr()); S = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream); F = torch.nn.functional
n, rows = 4096, 32768; x = torch.randn(rows, n, device="cuda"); g = torch.rand(n, device="cuda"); b = torch.rand(n, device="cuda"); y = torch.empty_like(x); want = F.layer_norm(x, (n,), g, b)
print("ln eager", cold(lambda: F.layer_norm(x, (n,), g, b)), "copy", cold(lambda: y.copy_(x)))
for w in range(17):
    y.zero_(); t = cold(lambda: lib.run_ln(w, P(x), P(g), P(b), P(y), n, rows, S), 15); print(f"ln {w} {t:.1f} {(y - want).abs().max().item():.1e}", flush=True)
del x, y, want; torch.cuda.empty_cache()
x = torch.rand(112, 64, 512, 512, device="cuda"); g = torch.rand(64, device="cuda"); b = torch.rand(64, device="cuda"); y = torch.empty_like(x); ws = torch.zeros(1 << 24, device="cuda", dtype=torch.uint8); want = F.group_norm(x[:2], 8, g, b)
print("gn eager", cold(lambda: F.group_norm(x, 8, g, b), 3))
for w in [w for w in range(18) if w != 6]:
    t = cold(lambda: lib.run_gn(w, P(x), P(g), P(b), P(y), 8 * 512 * 512, 112 * 8, 512 * 512, 8, 8, P(ws), S), 5); print(f"gn {w} {t:.1f} {(y[:2] - want).abs().max().item():.1e}", flush=True)
