#!/usr/bin/env python3
"""Is every verdict right after attacks on the same warm server?

    tests/cheats/after_attacks.py CUTEGEN [COUNT]

COUNT attacks (default 4; 100 before a release), then as many candidates whose verdicts are known, good and bad in turn, all
through one warm server and so, for one task, through the same oracle. Prints TAP. Standard library only.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TASK = HERE / "tasks" / "gate.py"
DEADLINE_S = 600
ATTACKS = ["writes_memory", "leaves_code", "swaps_main", "frames_in_init", "prints_a_result", "exits", "much_memory", "late_patch"]
KNOWN = [
    ("honest.cu", "pass"),
    ("zeros.cu", "wrong values"),
    ("foreign/torch_allowed.py", "pass, unattested"),
    ("half_the_rows.cu", "not written"),
]


def judged(cutegen: str, candidate: Path) -> str:
    command = [cutegen, "eval", str(TASK), str(candidate), "--device", "simt", "--draws", "2", "--allow-torch", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    try:
        return str(json.loads(done.stdout).get("verdict", done.stdout[:300]))
    except ValueError:
        return f"(no answer, exit {done.returncode}: {done.stderr[-300:]})"


def oracles(cutegen: str) -> str:
    done = subprocess.run([cutegen, "server", "status", "--json"], capture_output=True, text=True, check=False)
    return done.stdout


def main() -> int:
    cutegen, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 4
    failed = 0
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(CUTEGEN_RUNS=f"{work}/runs", CUTEGEN_RUNTIME=f"{work}/rt", CUTEGEN_SERVER="yes")
        try:
            for number, name in enumerate(itertools.islice(itertools.cycle(ATTACKS), count), 1):
                verdict = judged(cutegen, HERE / "foreign" / f"{name}.py")
                good = not verdict.startswith(("pass", "("))
                failed += not good
                print(f"{'ok' if good else 'not ok'} {number} - the attack {name}: {verdict}", flush=True)
            for number, (name, want) in enumerate(itertools.islice(itertools.cycle(KNOWN), count), count + 1):
                verdict = judged(cutegen, HERE / name)
                failed += verdict != want
                print(f"{'ok' if verdict == want else 'not ok'} {number} - after the attacks {name}: {verdict}", flush=True)
            if '"oracle"' not in oracles(cutegen):
                print("Bail out! no warm oracle was used: this proves nothing")
                return 1
        finally:
            subprocess.run([cutegen, "server", "stop"], capture_output=True, check=False)
    print(f"1..{2 * count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
