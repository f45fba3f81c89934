"""Tasks at real sizes on a GPU: the built-in engineer's predicted kernels, written here and judged there.

    python3 bench/gpu/sizes.py prepare CUTEGEN LADDER OUT [NAME...]    tasks and kernels into OUT; needs no GPU
    python3 bench/gpu/sizes.py judge CUTEGEN OUT SECONDS JOBS [NAME...]  one verdict each, as far as the time goes
    python3 bench/gpu/sizes.py table DIR...                            what `judge` left, the later folder's row first: Markdown
    python3 bench/gpu/sizes.py forty OUT                               forty tasks for `cutegen suite`, 0.1 to 0.5 GB a tensor

LADDER is build/release/tests/expert/expert_ladder. A task is described with primes for its batch sizes, which is quick; the sizes
are then put in (gemm_kernels.py). `judge` leaves OUT/NAME.json and prints one line per task: name, us, us of eager, of the
floor in per cent, verdict, seconds. $PROFILE names tasks whose kernels are profiled as well.
"""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gemm_kernels import grow  # noqa: E402

TASK = """import torch
import torch.nn as nn
import torch.nn.functional as F

{sizes}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {arguments}):
        return {forward}


def get_inputs():
{inputs}


def get_init_inputs():
    return []
"""
PRIMES = (17, 19)            # for batch sizes: no size that a window or a slice makes has these factors
PRODUCT_PRIMES = (101, 103, 107)

# Name: sizes, names of those that are described with primes, init, forward, inputs, the row whose kernel is judged (or its own).
ROWS = {}


def row(name, sizes, batch, forward, inputs="[torch.rand({shape}){dtype}]", init="pass", kernel=None, dtype="", before=""):
    text = inputs.format(shape=", ".join(sizes), dtype=dtype)
    ROWS[name] = {"sizes": sizes, "batch": batch, "forward": forward, "inputs": before + f"    return {text}", "init": init,
                  "arguments": "x, w" if len(batch) == 3 else "x", "kernel": kernel or name}


def rows():
    for name, call in (("softmax", "torch.softmax(x, dim=1)"), ("log_softmax", "torch.log_softmax(x, dim=1)")):
        row(f"{name}_393216", {"ROWS": 4096, "N": 393216}, ["ROWS"], call)
    row("max_pool1d", {"A": 64, "B": 192, "C": 65536}, ["A", "B"], "self.pool(x)", init="self.pool = nn.MaxPool1d(8, stride=1, padding=4, dilation=3)")
    row("max_pool2d", {"A": 32, "B": 64, "C": 512, "D": 512}, ["A", "B"], "self.pool(x)", init="self.pool = nn.MaxPool2d(4, stride=1, padding=1)")
    row("max_pool3d", {"A": 16, "B": 32, "C": 128, "D": 128, "E": 128}, ["A", "B"], "self.pool(x)", init="self.pool = nn.MaxPool3d(3, stride=2, padding=1, dilation=3)")
    weight = {"M": 128, "K": 32768, "N": 32768}
    rand = "[torch.rand(M, K){dtype}, torch.rand(K, N){dtype}]"
    linear = "[torch.rand(M, K){dtype} - 0.5, torch.rand(N, K){dtype} - 0.5]"
    row("m128_nn", weight, ["M", "K", "N"], "x @ w", rand)
    row("m128_nt", weight, ["M", "K", "N"], "F.linear(x, w)", linear)
    square = {"M": 4096, "K": 4096, "N": 4096}
    row("square", square, ["M", "K", "N"], "x @ w", rand)
    guard = {"bad_row": "    x[7, 5] = 1e30\n", "half_zeros": "    x[:, ::2] = 0\n", "one_hot": "    x[:64] = 0\n    x[:64, :64] = torch.eye(64)\n",
             "triangle": "    x = torch.triu(x)\n"}
    for name, change in guard.items():
        row(f"guard_{name}", square, ["M", "K", "N"], "x @ w", "[x, torch.rand(K, N)]", kernel="square", before="    x = torch.rand(M, K)\n" + change)
    row("cumprod", {"A": 32768, "B": 32768}, ["A"], "torch.cumprod(x, dim=1)")
    row("exclusive", {"A": 32768, "B": 32768}, ["A"], "torch.cumsum(torch.cat((torch.zeros_like(x.select(1, 0).unsqueeze(1)), x), dim=1)[:, :-1], dim=1)")
    row("batch_norm_train", {"A": 64, "B": 64, "C": 512, "D": 512}, ["A"], "self.norm(x)", init="self.norm = nn.BatchNorm2d(B)")
    for m in (1, 8, 16, 64, 256):
        row(f"m{m}_nt", {"M": m, "K": 16384, "N": 16384}, ["M", "K", "N"], "F.linear(x, w)", linear)
    for m in (1, 16, 64, 128):
        row(f"m{m}_nt_f16", {"M": m, "K": 16384, "N": 16384}, ["M", "K", "N"], "F.linear(x, w)", "[(torch.rand(M, K) - 0.5).half(), (torch.rand(N, K) - 0.5).half()]")
    row("max_pool2d_s2", {"A": 64, "B": 64, "C": 224, "D": 224}, ["A", "B"], "self.pool(x)", init="self.pool = nn.MaxPool2d(3, stride=2, padding=1)")
    row("max_pool2d_f16", {"A": 32, "B": 64, "C": 512, "D": 512}, ["A", "B"], "self.pool(x)", init="self.pool = nn.MaxPool2d(4, stride=1, padding=1)", dtype=".half()")
    row("softmax_1048576", {"ROWS": 1024, "N": 1048576}, ["ROWS"], "torch.softmax(x, dim=1)")
    row("softmax_262144", {"ROWS": 4096, "N": 262144}, ["ROWS"], "torch.softmax(x, dim=1)")
    row("avg_pool2d", {"A": 16, "B": 64, "C": 2048, "D": 2048}, ["A", "B"], "self.pool(x)", init="self.pool = nn.AvgPool2d(11)")


def write_task(out, name):
    r = ROWS[name]
    text = TASK.format(sizes="".join(f"{k} = {v}\n" for k, v in r["sizes"].items()), **{k: r[k] for k in ("init", "arguments", "forward", "inputs")})
    pathlib.Path(out, f"{name}.py").write_text(text)


def describe(cutegen, out, name):
    r = ROWS[name]
    primes = dict(zip(PRODUCT_PRIMES if len(r["batch"]) == 3 else PRIMES, r["batch"]))
    flags = [word for prime, size in primes.items() for word in ("--set", f"{size}={prime}")]
    run = subprocess.run([cutegen, "describe", f"{out}/{name}.py", "--device", "simt", "--no-scale", "--json", *flags], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{name}: {run.stdout[-300:]} {run.stderr[-300:]}")
    return grow(json.loads(run.stdout), {prime: r["sizes"][size] for prime, size in primes.items()})


def prepare(cutegen, ladder, out, names):
    os.makedirs(out, exist_ok=True)
    for name in names or ROWS:
        write_task(out, name)
        if ROWS[name]["kernel"] != name:
            continue
        with tempfile.TemporaryDirectory() as work:
            pathlib.Path(work, "task.json").write_text(json.dumps(describe(cutegen, out, name)))
            run = subprocess.run([ladder, f"{work}/task.json", work, "sm_90a", "predicted"], capture_output=True, text=True)
            made = list(pathlib.Path(work).glob("*.cu"))
            print(name, run.stdout.strip() or run.stderr.strip(), flush=True)
            if made:
                pathlib.Path(out, f"{name}.cu").write_text(made[0].read_text())


def one(cutegen, out, name, end):
    kernel = f"{out}/{ROWS[name]['kernel']}.cu"
    if not os.path.exists(kernel) or time.time() > end - 5:
        return {"name": name, "verdict": "not run"}
    start = time.time()
    words = [cutegen, "eval", f"{out}/{name}.py", kernel, "--device", "cuda:0", "--compile", "none", "--json", "--python", sys.executable]
    words += ["--profile"] if name in os.environ.get("PROFILE", "").split() else []
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=max(5, end - start))
    except subprocess.TimeoutExpired:
        return {"name": name, "verdict": "out of time"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    answer = json.loads(lines[-1]) if lines else {"verdict": done.stderr[-300:]}
    return {"name": name, "seconds": time.time() - start, **answer}


def line(answer):
    time_of = answer.get("measurement") or {}
    eager = next((b["cold_us"] for b in time_of.get("baselines", []) if b["name"] == "eager"), 0)
    us, floor = time_of.get("time_us") or 0, time_of.get("floor_us") or 0
    says = str(answer.get("verdict")) + " " + str(answer.get("summary") or answer.get("error") or "")
    return (f"{answer['name']:18} {us:9.1f} us  eager {eager:9.1f}  x {eager / us if us else 0:6.2f}  floor {100 * floor / us if us else 0:4.0f} %"
            f"  {answer.get('seconds', 0):5.1f} s  {says[:150]}")


def judge(cutegen, out, seconds, jobs, names):
    end = time.time() + float(seconds)
    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        for answer in pool.map(lambda name: one(cutegen, out, name, end), names or ROWS):
            pathlib.Path(os.environ.get("OUT", out), f"{answer['name']}.json").write_text(json.dumps(answer, indent=1))
            print(line(answer), flush=True)


# Forty tasks of all classes, smaller, so that a suite of them takes a minute or two: name, forward, shapes.
ROW = "512, 131072"
LONG = "64, 393216"
IMAGE = "32, 64, 256, 256"
FORTY = {
    **{f"p_{name}": (call, [ROW]) for name, call in {
        "relu": "F.relu(x)", "gelu": "F.gelu(x)", "swish": "x * torch.sigmoid(x)", "tanh": "torch.tanh(x)", "softplus": "F.softplus(x)",
        "hardtanh": "F.hardtanh(x)", "elu": "F.elu(x)", "scaled": "x * 1.5 + 0.25", "mish": "F.mish(x)", "leaky": "F.leaky_relu(x)"}.items()},
    **{f"r_{name}": (call, [LONG]) for name, call in {
        "softmax": "torch.softmax(x, 1)", "log_softmax": "torch.log_softmax(x, 1)", "sum": "x.sum(1)", "max": "x.amax(1)",
        "logsumexp": "torch.logsumexp(x, 1)", "mean": "x.mean(1)"}.items()},
    **{f"n_{name}": (call, [shape]) for name, (call, shape) in {
        "layer": ("F.layer_norm(x, (8192,))", "8192, 8192"), "rms": ("x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)", IMAGE),
        "instance": ("F.instance_norm(x)", IMAGE), "group": ("F.group_norm(x, 8)", IMAGE), "l2": ("F.normalize(x, dim=1)", "8192, 8192")}.items()},
    **{f"w_{name}": (call, [shape]) for name, (call, shape) in {
        "max2": ("F.max_pool2d(x, 2)", IMAGE), "max3": ("F.max_pool2d(x, 3, 1, 1)", IMAGE), "avg2": ("F.avg_pool2d(x, 2)", IMAGE),
        "avg1": ("F.avg_pool1d(x, 4)", "64, 64, 16384"), "max3d": ("F.max_pool3d(x, 2)", "8, 16, 64, 128, 128")}.items()},
    **{f"s_{name}": (call, ["4096, 16384"]) for name, call in {
        "cumsum": "torch.cumsum(x, 1)", "cumprod": "torch.cumprod(x, 1)", "reverse": "torch.cumsum(x.flip(1), 1).flip(1)",
        "exclusive": "torch.cat((torch.zeros_like(x[:, :1]), torch.cumsum(x, 1)[:, :-1]), 1)"}.items()},
    **{f"l_{name}": (call, ["4096, 16384", "4096, 16384"]) for name, call in {
        "mse": "F.mse_loss(x, w)", "smooth_l1": "F.smooth_l1_loss(x, w)", "cosine": "F.cosine_similarity(x, w, 1)"}.items()},
    **{f"g_{name}": (call, shapes) for name, (call, shapes) in {
        "square": ("x @ w", ["2048, 2048", "2048, 2048"]), "tall": ("x @ w", ["16384, 512", "512, 512"]), "relu": ("F.relu(x @ w)", ["2048, 1024", "1024, 2048"]),
        "transposed": ("x @ w.t()", ["2048, 1024", "2048, 1024"]), "bmm": ("torch.bmm(x, w)", ["16, 512, 512", "16, 512, 512"]),
        "half": ("x.half() @ w.half()", ["2048, 2048", "2048, 2048"]), "gelu": ("F.gelu(x @ w) * 0.5", ["4096, 512", "512, 1024"])}.items()},
}


def forty(out):
    os.makedirs(out, exist_ok=True)
    for name, (forward, shapes) in FORTY.items():
        inputs = "    return [" + ", ".join(f"torch.rand({shape})" for shape in shapes) + "]"
        text = TASK.format(sizes="", init="pass", arguments=", ".join("xw"[: len(shapes)]), forward=forward, inputs=inputs)
        pathlib.Path(out, f"{name}.py").write_text(text)


def table(folders):
    print("| task | us | eager us | over eager | of the roofline | verdict |\n|---|---|---|---|---|---|")
    for name in ROWS:
        found = next((p for p in (pathlib.Path(f, f"{name}.json") for f in reversed(folders)) if p.exists() and "measurement" in p.read_text()), None)
        answer = json.loads(found.read_text()) if found else {}
        took = answer.get("measurement") or {}
        us, eager = took.get("time_us"), next((b["cold_us"] for b in took.get("baselines", []) if b["name"] == "eager"), 0)
        if us:
            print(f"| {name} | {us:.0f} | {eager:.0f} | {eager / us:.2f} | {100 * (took.get('floor_us') or 0) / us:.0f} % | {answer['verdict']} |")


def main():
    rows()
    what, *words = sys.argv[1:]
    if what == "prepare":
        prepare(*words[:3], words[3:])
    elif what == "table":
        table(words)
    elif what == "forty":
        forty(words[0])
    else:
        judge(*words[:4], words[4:])


if __name__ == "__main__":
    main()
