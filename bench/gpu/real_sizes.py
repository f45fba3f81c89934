"""Memory-bound tasks at the sizes of public suites, on a GPU: the end of the built-in engineer's ladder, judged.

    python3 bench/gpu/real_sizes.py tasks OUT                    OUT/NAME.py, one task file per row
    python3 bench/gpu/real_sizes.py judge CUTEGEN LADDER OUT [NAME...]  OUT/NAME.cu, OUT/NAME.json, and a table

LADDER is build/release/tests/expert/expert_ladder, with CUTEGEN_HOME and LD_LIBRARY_PATH set where it needs them.
"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gemm_kernels import climb  # noqa: E402

TASK = """import torch
import torch.nn as nn
import torch.nn.functional as F

{sizes}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {forward}


def get_inputs():
    return [torch.rand({shape}){dtype}]


def get_init_inputs():
    return []
"""

# Name: sizes, what the module holds, what it computes.
ROWS = {}
for length, rows in ((131072, 4096), (196608, 4096), (262144, 4096), (393216, 4096), (524288, 2048), (1048576, 1024), (4194304, 256)):
    ROWS[f"softmax_{length}"] = ({"ROWS": rows, "N": length}, "pass", "torch.softmax(x, dim=1)")
    ROWS[f"log_softmax_{length}"] = ({"ROWS": rows, "N": length}, "pass", "torch.log_softmax(x, dim=1)")
ROWS["max_pool1d"] = ({"A": 64, "B": 192, "C": 65536}, "self.pool = nn.MaxPool1d(8, stride=1, padding=4, dilation=3)", "self.pool(x)")
ROWS["max_pool2d"] = ({"A": 32, "B": 64, "C": 512, "D": 512}, "self.pool = nn.MaxPool2d(4, stride=1, padding=1)", "self.pool(x)")
ROWS["max_pool3d"] = ({"A": 16, "B": 32, "C": 128, "D": 128, "E": 128}, "self.pool = nn.MaxPool3d(3, stride=2, padding=1, dilation=3)", "self.pool(x)")
ROWS["avg_pool1d"] = ({"A": 64, "B": 128, "C": 65536}, "self.pool = nn.AvgPool1d(8, stride=1, padding=4)", "self.pool(x)")
ROWS["avg_pool2d"] = ({"A": 16, "B": 64, "C": 2048, "D": 2048}, "self.pool = nn.AvgPool2d(11)", "self.pool(x)")
ROWS["avg_pool3d"] = ({"A": 16, "B": 32, "C": 128, "D": 128, "E": 256}, "self.pool = nn.AvgPool3d(3, stride=2, padding=1)", "self.pool(x)")
ROWS["max_pool2d_s2"] = ({"A": 64, "B": 64, "C": 224, "D": 224}, "self.pool = nn.MaxPool2d(3, stride=2, padding=1)", "self.pool(x)")
ROWS["max_pool2d_2"] = ({"A": 64, "B": 64, "C": 256, "D": 256}, "self.pool = nn.MaxPool2d(2)", "self.pool(x)")
ROWS["max_pool2d_odd"] = ({"A": 64, "B": 64, "C": 223, "D": 225}, "self.pool = nn.MaxPool2d(3, stride=1, padding=1)", "self.pool(x)")
ROWS["cumprod"] = ({"A": 32768, "B": 32768}, "pass", "torch.cumprod(x, dim=1)")
ROWS["cumsum"] = ({"A": 32768, "B": 32768}, "pass", "torch.cumsum(x, dim=1)")
for name in ("max_pool2d", "avg_pool1d", "max_pool3d", "softmax_393216"):
    ROWS[f"{name}_f16"] = (*ROWS[name], ".half()")


def write_tasks(out):
    os.makedirs(out, exist_ok=True)
    for name, (sizes, init, forward, *dtype) in ROWS.items():
        text = TASK.format(sizes="".join(f"{k} = {v}\n" for k, v in sizes.items()), init=init, forward=forward,
                           shape=", ".join(sizes), dtype=dtype[0] if dtype else "")
        pathlib.Path(out, f"{name}.py").write_text(text)


def kernel(cutegen, ladder, out, name):
    """The kernel at the end of the ladder, the steps that only try launch shapes left out."""
    words = [cutegen, "describe", f"{out}/{name}.py", "--device", "cuda:0", "--json", "--python", sys.executable]
    described = subprocess.run(words, capture_output=True, text=True, timeout=150).stdout
    text, _ = climb(ladder, json.loads(described), ["try "])
    pathlib.Path(out, f"{name}.cu").write_text(text)


def judge(cutegen, ladder, out, names):
    print("| task | time | over eager | roofline | verdict |\n|---|---|---|---|---|", flush=True)
    for name in names or ROWS:
        words = [cutegen, "eval", f"{out}/{name}.py", f"{out}/{name}.cu", "--device", "cuda:0", "--json", "--python", sys.executable]
        kernel(cutegen, ladder, out, name)
        done = subprocess.run(words, capture_output=True, text=True, timeout=170)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        answer = json.loads(lines[-1]) if lines else {"verdict": done.stderr[-300:]}
        pathlib.Path(out, f"{name}.json").write_text(json.dumps(answer, indent=1))
        time_of = answer.get("measurement") or {}
        eager = next((b["cold_us"] for b in time_of.get("baselines", []) if b["name"] == "eager"), 0)
        us, floor = time_of.get("time_us") or 0, time_of.get("floor_us") or 0
        verdict = str(answer.get("verdict"))[:160]
        print(f"| {name} | {us:.1f} us | {eager / us if us else 0:.2f} | {100 * floor / us if us else 0:.0f} % | {verdict} |", flush=True)


def main():
    what, *words = sys.argv[1:]
    if what == "tasks":
        write_tasks(words[0])
    else:
        judge(*words[:3], words[3:])


if __name__ == "__main__":
    main()
