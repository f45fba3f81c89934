#!/usr/bin/env python3
"""From an edit to its verdict, two builds of cutegen beside each other.

    [DEVICE=cuda:0] [ONLY=gate] bench/loop/edit_to_verdict.py BEFORE AFTER OUT.md [ROUNDS]

BEFORE and AFTER are source trees with a build in build/release, or unpacked tarballs; what they judge are this tree's kernels. Each build has a warm server
of its own. A round edits every kernel in every way and has both builds judge it, one after the other, the order changing from
round to round: what disturbs the machine meets both. Beside the time on the clock stands the CPU time, of the command and of what the
server lent it, which a busy machine disturbs far less. ROUNDS: 7. Ways to edit: a comment with a new number among the device
code (kernel), one in the plan (plan), none (unchanged). Standard library only.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
CASES = [("pointwise (swish)", "examples/swish.py", "examples/kernels/swish.cu"), ("gate", "tests/cheats/tasks/gate.py", "tests/cheats/honest.cu")]
CASES = [case for case in CASES if os.environ.get("ONLY", "") in case[0]]
DEVICE = os.environ.get("DEVICE", "simt")
WAYS = {"kernel": "#ifdef CUTEGEN_DEVICE\n", "plan": "#ifdef CUTEGEN_HOST\n", "unchanged": ""}


class Build:
    def __init__(self, tree: str, work: Path) -> None:
        self.tree = Path(tree).resolve()
        places = {name: str(work / name.lower()) for name in ("CUTEGEN_CACHE", "CUTEGEN_RUNS", "CUTEGEN_RUNTIME")}
        self.env = {**os.environ, **places, "CUTEGEN_SERVER": "yes"}
        self.program = str(self.tree / "bin" / "cutegen")
        if not Path(self.program).exists():
            self.env["CUTEGEN_HOME"] = str(self.tree)
            self.program = str(self.tree / "build" / "release" / "src" / "cutegen")

    def lent_cpu(self) -> dict[int, float]:
        """CPU seconds so far of the server's processes."""
        done = subprocess.run([self.program, "server", "status", "--json"], env=self.env, capture_output=True, text=True, check=False)
        found = {}
        for one in json.loads(done.stdout or "{}").get("processes", []):
            fields = Path(f"/proc/{one['pid']}/stat").read_text().rpartition(")")[2].split()
            found[one["pid"]] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return found

    def judge(self, task: str, kernel: Path) -> tuple[float, float]:
        """(seconds, CPU seconds)"""
        lent, own = self.lent_cpu(), resource.getrusage(resource.RUSAGE_CHILDREN)
        begin = time.monotonic()
        command = [self.program, "eval", str(ROOT / task), str(kernel), "--device", DEVICE, "--json"]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begin
        if '"verdict": "pass"' not in done.stdout and '"verdict":"pass"' not in done.stdout:
            raise SystemExit(f"{self.tree}: {kernel}: {(done.stdout or done.stderr)[:400]}")
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = now.ru_utime + now.ru_stime - own.ru_utime - own.ru_stime
        cpu += sum(used - lent.get(pid, 0.0) for pid, used in self.lent_cpu().items())
        return seconds, cpu

    def stop(self) -> None:
        subprocess.run([self.program, "server", "stop"], env=self.env, capture_output=True, check=False)


def edited(source: str, way: str, number: int, path: Path) -> Path:
    mark = WAYS[way]
    path.write_text(source.replace(mark, f"{mark}// edit {number}\n", 1) if mark else source)
    return path


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def main() -> int:
    before, after, out = sys.argv[1:4]
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 7
    times: dict[tuple[str, str], list[list[tuple[float, float]]]] = {}
    loads, number = [load()], 0
    with tempfile.TemporaryDirectory(prefix="edit-") as folder:
        work = Path(folder)
        builds = [Build(tree, work / str(k)) for k, tree in enumerate((before, after))]
        try:
            for _, task, kernel in CASES:  # warm: the first judgement is not counted
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    list(pool.map(lambda build: build.judge(task, ROOT / kernel), builds))
            for turn in range(rounds):
                for name, task, kernel in CASES:
                    source = (ROOT / kernel).read_text()
                    for way in WAYS:
                        number += 1
                        path = edited(source, way, number, work / Path(kernel).name)
                        pair = [(0.0, 0.0), (0.0, 0.0)]
                        for k in (0, 1) if turn % 2 == 0 else (1, 0):
                            pair[k] = builds[k].judge(task, path)
                        times.setdefault((name, way), []).append(pair)
                loads.append(load())
        finally:
            for build in builds:
                build.stop()
    lines = ["| kernel | edited | before | after | CPU before | CPU after | CPU, median of the differences |", "|---|---|---|---|---|---|---|"]
    for (name, way), pairs in times.items():
        middle = [[statistics.median(p[k][what] for p in pairs) for k in (0, 1)] for what in (0, 1)]
        gap = statistics.median(p[1][1] - p[0][1] for p in pairs)
        row = [name, way, *(f"{v:.2f} s" for v in middle[0] + middle[1]), f"{1000 * gap:+.0f} ms"]
        lines.append("| " + " | ".join(row) + " |")
    text = "\n".join(lines) + f"\n\n{rounds} rounds; load average of the machine from round to round: {', '.join(loads)}.\n"
    Path(out).write_text(text)
    print(text)
    print(json.dumps({f"{n}, {w}": v for (n, w), v in times.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
