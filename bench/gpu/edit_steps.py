#!/usr/bin/env python3
"""Where the time from an edit to its verdict goes: requests of one judgement, summed by kind.

    [DEVICE=cuda:0] [ROUNDS=2] bench/gpu/edit_steps.py TREE NAME=TASK.py,KERNEL.cu[,FLAG...]...

TREE is a source tree with a build in build/release, or an unpacked tarball. Each kernel is judged cold (a new server, the caches
that CUTEGEN_CACHE names), then unchanged, with a new comment in its plan and with one among its device code. A column is the
median of ROUNDS; milliseconds. "itself" is what is left: the command, waiting for the GPU and for processes. Each table is
printed as soon as it is there. Standard library only.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

DEVICE = os.environ.get("DEVICE", "cuda:0")
ROUNDS = int(os.environ.get("ROUNDS", "2"))
WAYS = {"unchanged": "", "plan": "#ifdef CUTEGEN_HOST\n", "kernel": "#ifdef CUTEGEN_DEVICE\n"}
ASKED = re.compile(r'process (\d+) took (\d+) ms for .*?"do":\s*"(\w+)"')
STARTED = re.compile(r"([^ /]+) took (\d+) ms$")


def program(tree: Path) -> tuple[str, dict[str, str]]:
    if (tree / "bin" / "cutegen").exists():
        return str(tree / "bin" / "cutegen"), {}
    return str(tree / "build" / "release" / "src" / "cutegen"), {"CUTEGEN_HOME": str(tree)}


def judge(command: list[str], env: dict[str, str]) -> dict[str, float]:
    """Milliseconds by kind of request, with their number; "all": by our clock."""
    begin = time.monotonic()
    done = subprocess.run([*command, "--device", DEVICE, "-vv"], env=env, capture_output=True, text=True, check=False)
    found: dict[str, float] = {"all": 1000 * (time.monotonic() - begin)}
    if not done.stdout.startswith("pass"):
        print("not a pass:", done.stdout[:300], done.stderr[-300:], flush=True)
    runners: list[str] = []
    for line in done.stderr.splitlines():
        asked, started = ASKED.search(line), STARTED.search(line)
        if asked:
            pid, took, what = asked[1], float(asked[2]), asked[3]
            if what in ("bind", "run", "time") or (what == "load" and pid in runners):
                if pid not in runners:
                    runners.append(pid)
                what = f"runner {what}"
            if what == "load" and '"module"' in line + " ":
                runners.append(pid)
                what = "runner load"
            found[what] = found.get(what, 0.0) + took
            found[f"{what} #"] = found.get(f"{what} #", 0.0) + 1
        elif started:
            found[started[1]] = found.get(started[1], 0.0) + float(started[2])
        elif '"arch"' in line and "took" in line:
            found["compile"] = found.get("compile", 0.0) + float(re.search(r"took (\d+)", line)[1])  # type: ignore[index]
    found["itself"] = found["all"] - sum(v for k, v in found.items() if k != "all" and not k.endswith("#"))
    return found


def table(name: str, columns: dict[str, list[dict[str, float]]]) -> None:
    print(f"\n| {name} | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    rows: list[str] = []
    for shots in columns.values():
        for shot in shots:
            rows += [k for k in shot if k not in rows and not k.endswith("#") and k not in ("all", "itself")]
    for row in [*sorted(rows), "itself", "all"]:
        cells = []
        for shots in columns.values():
            value = statistics.median(s.get(row, 0.0) for s in shots)
            count = statistics.median(s.get(f"{row} #", 0.0) for s in shots)
            cells.append(f"{value:.0f}" + (f" ({count:.0f})" if count > 1 else ""))
        print(f"| {row} | " + " | ".join(cells) + " |")
    sys.stdout.flush()


def main() -> int:
    tree = Path(sys.argv[1]).resolve()
    cutegen, home = program(tree)
    number = int(time.time()) % 100000
    with tempfile.TemporaryDirectory(prefix="steps-") as work:
        env = {**os.environ, **home, "CUTEGEN_RUNS": f"{work}/runs", "CUTEGEN_RUNTIME": f"{work}/rt", "CUTEGEN_SERVER": "yes"}
        env.setdefault("CUTEGEN_CACHE", f"{work}/cache")
        try:
            for case in sys.argv[2:]:
                name, _, rest = case.partition("=")
                task, kernel, *flags = rest.split(",")
                source = Path(kernel).read_text()
                edited = Path(work) / Path(kernel).name
                columns: dict[str, list[dict[str, float]]] = {}
                edited.write_text(source)
                columns["cold"] = [judge([cutegen, "eval", task, str(edited), *flags], env)]
                for way, mark in WAYS.items():
                    for _ in range(ROUNDS):
                        number += 1
                        edited.write_text(source.replace(mark, f"{mark}// edit {number}\n", 1) if mark else source)
                        columns.setdefault(way, []).append(judge([cutegen, "eval", task, str(edited), *flags], env))
                table(name, columns)
        finally:
            subprocess.run([cutegen, "server", "stop"], env=env, capture_output=True, check=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
