"""Times and errors of pointwise.cu beside eager's, cold L2: `python3 pointwise.py ./pointwise.so`."""
import ctypes, sys, json, torch, torch.nn.functional as F
lib = ctypes.CDLL(sys.argv[1])
flush = torch.zeros(64 << 20, device="cuda")
def cold(call, runs=9):
    ts = []
    for i in range(runs + 2):
        flush.sum()
        b, e = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        b.record(); call(); e.record(); torch.cuda.synchronize()
        if i > 1: ts.append(b.elapsed_time(e) * 1e3)
    ts.sort(); return ts[runs // 2]
P = lambda t: ctypes.c_void_p(t.data_ptr())
eager = dict(relu=F.relu, leaky=F.leaky_relu, sigm=torch.sigmoid, tanh=torch.tanh, gelu=F.gelu, selu=F.selu, hsig=F.hardsigmoid,
             soft=F.softplus, elu=F.elu, htan=F.hardtanh, swish=lambda x: x * torch.sigmoid(x), ssign=lambda x: x / (1 + torch.abs(x)))
variants = dict(relu=["relu"], leaky=["leaky"], sigm=["sigm"], tanh=["tanh0", "tanh1", "tanh2"], gelu=["gelu0", "gelu1"], selu=["selu0", "selu1"],
                hsig=["hsig", "hsig1"], soft=["soft0", "soft1", "soft2"], elu=["elu0", "elu1"], htan=["htan"], swish=["swish"], ssign=["ssign"])
n = 4096 * 131072
for code, dtype in enumerate((torch.float32, torch.float16, torch.bfloat16)):
    torch.manual_seed(1)
    x = torch.rand(n, device="cuda", dtype=torch.float32).to(dtype); y = torch.empty_like(x)
    t = cold(lambda: y.copy_(x)); print(f"{dtype} copy {t:.1f}", flush=True)
    m = 1 << 22
    tests = {"rand": x[:m].clone(), "normal3": (torch.randn(m, device="cuda") * 3).to(dtype), "small": (torch.randn(m, device="cuda") * 1e-3).to(dtype), "wide": (torch.randn(m, device="cuda") * 30).to(dtype)}
    for name, fn in eager.items():
        with torch.no_grad():
            te = cold(lambda: fn(x))
        line = [f"{str(dtype)[6:]:8} {name:6} eager {te:.1f}"]
        errs = {}
        for k, a in tests.items():
            truth = fn(a.double()); e = fn(a).double()
            errs[k] = f"{((e - truth).norm() / truth.norm()).item():.1e}"
        line.append("err " + str(errs))
        for v in variants[name]:
            go = getattr(lib, "run_" + v)
            st = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            shapes = (0, 1, 2) if v[-1] in "12" or name in ("gelu", "soft") else (0,)
            ts = [cold(lambda: go(code, s, P(x), P(y), ctypes.c_int64(n), st)) for s in shapes]
            er = {}
            for k, a in tests.items():
                truth = fn(a.double()); o = torch.empty_like(a)
                go(code, 0, P(a), P(o), ctypes.c_int64(m), st); torch.cuda.synchronize()
                er[k] = f"{((o.double() - truth).norm() / truth.norm()).item():.1e}"
            line.append(f"\n    {v:6} " + " ".join(f"{q:.1f}" for q in ts) + f" us, x eager {te / min(ts):.3f} err {er}")
        print(" ".join(line), flush=True)
    del x, y
n, rows = 4095, 128 * 4096
x = torch.rand(rows, n, device="cuda"); y = torch.empty(rows, dtype=torch.int64, device="cuda")
te = cold(lambda: torch.argmin(x, 1)); want = torch.argmin(x, 1)
print(f"argmin eager {te:.1f}")
for w in range(15):
    t = cold(lambda: lib.run_argmin(w, P(x), P(y), n, rows, ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)))
    print(f"argmin {w} {t:.1f} us x eager {te / t:.3f} same {bool((y == want).all())}", flush=True)
