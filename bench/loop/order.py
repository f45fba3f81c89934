# SPDX-License-Identifier: Apache-2.0
"""How soon the built-in engineer has its best kernel: its steps in order, and from the predicted composition on.

    bench/loop/order.py PATH-TO-CUTEGEN OUT-FOLDER [--per-class 8] [--seed 1] [--minutes 60] [--class NAME ...]

Tasks of eight classes with sizes drawn at random, each run with --order steps and --order predicted on simt. Times are
MODELLED. The best of a task is the fastest kernel of both runs. What was run is kept in OUT-FOLDER/order.json and not run
again; the table goes to stdout.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from pathlib import Path

WITHIN = 1.15
FEW = 5
ORDERS = ("steps", "predicted")
TASK = """import torch
import torch.nn.functional as F

class Model(torch.nn.Module):
    def forward(self, {arguments}):
        return {result}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def rows(rng: random.Random) -> str:
    return f"torch.randn({rng.choice((64, 200, 512, 1000, 2048))}, {rng.choice((96, 255, 512, 1000, 1024, 3000, 4096, 8192))})"


def image(rng: random.Random) -> str:
    size = rng.choice((14, 28, 31, 56, 64))
    return f"torch.randn({rng.choice((4, 8, 16))}, {rng.choice((8, 16, 32))}, {size}, {size})"


def product(rng: random.Random) -> list[str]:
    m, n, k = (rng.choice((16, 48, 64, 100, 128, 192, 256)) for _ in range(3))
    return [f"torch.randn({m}, {k})", f"torch.randn({k}, {n})"]


CLASSES = {
    "pointwise": (
        ("x * torch.sigmoid(x)", "torch.tanh(x) + x", "F.gelu(x)", "F.relu(x) * 2.0", "torch.exp(-x * x)"),
        lambda rng: [rows(rng)],
    ),
    "softmax": (("torch.softmax(x, 1)", "torch.log_softmax(x, 1)", "torch.softmax(x * 0.5, 1)"), lambda rng: [rows(rng)]),
    "norms": (
        ("F.layer_norm(x, x.shape[1:])", "x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + 1e-5)", "F.normalize(x, dim=1)"),
        lambda rng: [rows(rng)],
    ),
    "reductions": (("x.sum(1)", "x.mean(1)", "x.amax(1)", "x.argmax(1)", "torch.logsumexp(x, 1)"), lambda rng: [rows(rng)]),
    "columns": (("x.sum(0)", "x.amax(0)", "torch.softmax(x, 0)", "x.mean(0)"), lambda rng: [rows(rng)]),
    "scans": (("torch.cumsum(x, 1)", "torch.cumprod(torch.sigmoid(x) + 0.5, 1)", "torch.cumsum(x, 0)"), lambda rng: [rows(rng)]),
    "pools": (("F.max_pool2d(x, 2)", "F.avg_pool2d(x, 3, 2, 1)", "F.max_pool2d(x, 3, 1, 1)", "F.avg_pool2d(x, 2)"), lambda rng: [image(rng)]),
    "products": (("x @ y", "F.relu(x @ y)", "x @ y * 2.0", "x.half() @ y.half()"), product),
}


def write_tasks(folder: Path, per_class: int, seed: int) -> list[tuple[str, Path]]:
    folder.mkdir(parents=True, exist_ok=True)
    tasks = []
    for number in range(per_class):  # by turns: an early end leaves all classes alike
        for name, (results, inputs) in CLASSES.items():
            rng = random.Random(f"{seed} {name} {number}")
            made = inputs(rng)
            path = folder / f"{name}_{number}.py"
            path.write_text(
                TASK.format(arguments=", ".join("xy"[: len(made)]), result=results[number % len(results)], inputs=", ".join(made))
            )
            tasks.append((name, path))
    return tasks


def ladder(program: str, path: Path, order: str, runs: Path) -> list[float]:
    """Modelled microseconds of each verified kernel, in order."""
    words = [program, "run", str(path), "--json", "--fresh", "--device", "simt", "--order", order, "--draws", "1"]
    made = subprocess.run([*words, "--check", "memory", "--tune", "0", "--no-report", "--runs", str(runs)], capture_output=True, text=True)
    times = []
    for line in made.stdout.splitlines():
        event = json.loads(line)
        if event.get("event") == "attempt" and event["judgement"]["verdict"] == "pass":
            times.append(event["measurement"]["time_us"])
    if not times:
        print(f"{path.stem}, {order}: no kernel: {made.stdout[-200:]} {made.stderr[-200:]}", file=sys.stderr)
    return times


def table(done: dict[str, dict[str, list[float]]]) -> None:
    print("| class | tasks | first within 15 %: steps | predicted | best within five: steps | predicted | kernels: steps | predicted |")
    print("|---|---|---|---|---|---|---|---|")
    by_class: dict[str, list[dict[str, list[float]]]] = {}
    for name, times in done.items():
        if all(times.get(order) for order in ORDERS):
            by_class.setdefault(name.rsplit("_", 1)[0], []).append(times)
    by_class["all"] = [times for several in by_class.values() for times in several]
    for name, several in by_class.items():
        cells = []
        count = max(len(several), 1)
        best = [min(min(times[order]) for order in ORDERS) for times in several]
        for order in ORDERS:
            cells.append(sum(times[order][0] <= WITHIN * b for times, b in zip(several, best)) / count)
        for order in ORDERS:
            cells.append(sum(min(times[order][:FEW]) <= 1.001 * b for times, b in zip(several, best)) / count)
        kernels = [sum(len(times[order]) for times in several) / count for order in ORDERS]
        print(f"| {name} | {len(several)} | " + " | ".join(f"{c:.0%}" for c in cells) + " | " + " | ".join(f"{k:.1f}" for k in kernels) + " |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("out", type=Path)
    parser.add_argument("--per-class", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--class", dest="classes", action="append", choices=sorted(CLASSES))
    a = parser.parse_args()
    kept = a.out / "order.json"
    tasks = write_tasks(a.out / "tasks", a.per_class, a.seed)
    done = json.loads(kept.read_text()) if kept.exists() else {}
    end = time.monotonic() + 60 * a.minutes
    for name, path in tasks:
        if a.classes and name not in a.classes:
            continue
        for order in ORDERS:
            if done.get(path.stem, {}).get(order) is not None or time.monotonic() > end:
                continue
            done.setdefault(path.stem, {})[order] = ladder(a.program, path, order, a.out / "runs")
            kept.write_text(json.dumps(done, indent=1))
    table(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
