"""Faults on a GPU: a bad candidate gets its verdict in bounded time, and the next one is judged right after, by the same oracle.

    python3 bench/gpu/faults.py CUTEGEN OUT.md

Each row: the bad candidate, its verdict and seconds, then a good one, its verdict and seconds, and whether the oracle process is
still the one from the beginning.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

cutegen, out = sys.argv[1:3]
work = pathlib.Path(tempfile.mkdtemp(prefix="cutegen-faults-"))
env = {"CUTEGEN_CACHE": str(work / "cache"), **os.environ, "CUTEGEN_RUNS": str(work / "runs"), "CUTEGEN_RUNTIME": str(work / "rt")}
(work / "task.py").write_text(
    """import torch

N = 1 << 20


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
"""
)
KERNEL = """#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void twice(float const *px, float *py, int n)
{
    Tensor x = make_tensor(make_gmem_ptr(px), make_shape(n)); // (n)
    Tensor y = make_tensor(make_gmem_ptr(py), make_shape(n)); // (n)
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    @BODY@
}
#endif
#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0], *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    @PLAN@
    return CUTEGEN_LAUNCH(call, (twice), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n);
}
#endif
"""
GOOD = "if (i < n) y(i) = 2.0f * x(i);"
CASES = [
    ("illegal address", "if (i < n) y(i) = x(i + (int64_t(1) << 45));", "", {"unsafe memory", "crash"}),
    ("write far away", "if (i < n) { y(i) = x(i); py[(int64_t(1) << 44) + i] = 1.0f; }", "", {"unsafe memory", "crash"}),
    ("misaligned access", "if (i < n) { y(i) = *(float const *)((char const *)px + 1); }", "", {"unsafe memory", "crash"}),
    ("trap", GOOD + ' if (i == 7) asm volatile("trap;");', "", {"crash"}),
    ("endless loop", "while (*(volatile float const *)px >= 0.0f) { } y(i) = x(i);", "", {"hang"}),
    ("workspace larger than the GPU", GOOD, "if (!cutegen_workspace(call, (int64_t)1 << 40)) return 1;", {"out of memory", "bad plan"}),
    ("wrong values", "if (i < n) y(i) = 3.0f * x(i);", "", {"wrong values"}),
]


def evaluate(name, body, plan=""):
    path = work / f"{name.replace(' ', '-')}.cu"
    path.write_text(KERNEL.replace("@BODY@", body).replace("@PLAN@", plan))
    begin = time.time()
    done = subprocess.run(
        [cutegen, "eval", "task.py", str(path), "--device", "cuda:0", "--json", "--run-deadline", "5"],
        env=env, cwd=work, capture_output=True, text=True, timeout=120,
    )
    lines = done.stdout.strip().splitlines()
    answer = json.loads(lines[-1]) if lines else {"verdict": f"exit {done.returncode}: {done.stderr[-200:]}", "summary": ""}
    return answer, time.time() - begin


def oracle():
    said = subprocess.run([cutegen, "server", "status", "--json"], env=env, capture_output=True, text=True).stdout
    return [p["pid"] for p in json.loads(said).get("processes", []) if p["kind"] == "oracle" and p["state"] != "ending"]


evaluate("good", GOOD)
first = oracle()
bad = 0
with open(out, "w") as f:
    f.write("| candidate | verdict | seconds | next, a good one | seconds | same oracle |\n|---|---|---|---|---|---|\n")
    for name, body, plan, wanted in CASES:
        said, seconds = evaluate(name, body, plan)
        after, after_seconds = evaluate("good", GOOD)
        same = oracle() == first
        right = said.get("verdict") in wanted and after.get("verdict") == "pass" and same
        bad += not right
        f.write(f"| {name} | {said.get('verdict')} | {seconds:.1f} | {after.get('verdict')} | {after_seconds:.1f} | {'yes' if same else 'NO'} |\n")
        print(name, "->", said.get("verdict"), "|", said.get("summary"), f"{seconds:.1f} s; then {after.get('verdict')} {after_seconds:.1f} s", same, flush=True)
subprocess.run([cutegen, "server", "stop"], env=env)
print(open(out).read(), "all as wanted" if not bad else f"{bad} NOT AS WANTED")
sys.exit(bad)
