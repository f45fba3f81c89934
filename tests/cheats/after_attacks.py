#!/usr/bin/env python3
"""Is every verdict right among and after attacks on the same warm server?

    tests/cheats/after_attacks.py CUTEGEN [COUNT]

COUNT attacks (default 10; `make sweep` runs 100) and as many candidates whose verdicts are known, good and bad, all through one
warm server and so through the same oracle: first in turn, one attack and one candidate, then the other half of the attacks,
then the other half of the candidates. Attacks are the cheats of this folder that are native or Python code and those that aim
at the plan; what must become of each stands in its first lines (run.py). Prints TAP. Standard library only.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from run import head, wanted

HERE = Path(__file__).resolve().parent
TASK = HERE / "tasks" / "gate.py"
DEADLINE_S = 3600
FIRST = ["writes_memory", "leaves_code", "swaps_main", "frames_in_init", "prints_a_result", "much_memory", "late_patch", "with_subprocess"]
SLOW = {"never_ends", "much_disk", "plan_without_end", "plan_never_returns", "very_long_compile"}  # their verdict is a deadline
KNOWN = ["honest.cu", "zeros.cu", "foreign/torch_allowed.py", "half_the_rows.cu", "nan.cu", "copy.cu", "modifies_input.cu", "constant.cu"]


def attacks() -> list[Path]:
    """Those that aim at a process first, so that a short run has them."""
    found = sorted(HERE.glob("foreign/*.py")) + sorted(HERE.glob("plan_*.cu"))
    chosen = []
    for path in found:
        fields = head(path)
        on_simt = "simt" in fields.get("device", "simt") and fields.get("task", "gate") == "gate"
        if on_simt and path.stem not in SLOW and not any(v.startswith("pass") for v in wanted(fields["verdict"], "simt")):
            chosen.append(path)
    return sorted(chosen, key=lambda p: FIRST.index(p.stem) if p.stem in FIRST else len(FIRST))


def judged(cutegen: str, candidate: Path) -> str:
    command = [cutegen, "eval", str(TASK), str(candidate), "--device", "simt", "--draws", "2", "--json"]
    command += head(candidate).get("flags", "").split()
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        return f"(no answer, exit {done.returncode}: {done.stderr[-300:]})"
    return f"(error: {said['error']})" if "error" in said else str(said.get("verdict", "(none)"))


def order(count: int) -> Iterator[tuple[str, Path]]:
    """(what it is, the candidate)"""
    bad = [("the attack", p) for p in itertools.islice(itertools.cycle(attacks()), count)]
    known = [("the candidate", HERE / name) for name in itertools.islice(itertools.cycle(KNOWN), count)]
    half = count // 2
    for pair in zip(bad[:half], known[:half]):
        yield from pair
    yield from bad[half:]
    yield from known[half:]


def uses_of_oracles(cutegen: str) -> int:
    """How often the oracle that was lent most was lent."""
    done = subprocess.run([cutegen, "server", "status", "--json"], capture_output=True, text=True, check=False)
    try:
        processes = json.loads(done.stdout)["processes"]
    except (ValueError, KeyError):
        return 0
    return max((p["uses"] for p in processes if p["kind"] == "oracle"), default=0)


def main() -> int:
    cutegen, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    failed, most, start = 0, 0, time.monotonic()
    print(f"1..{2 * count + 1}")
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(CUTEGEN_RUNS=f"{work}/runs", CUTEGEN_RUNTIME=f"{work}/rt", CUTEGEN_SERVER="yes")
        try:
            for number, (what, path) in enumerate(order(count), 1):
                verdict, want = judged(cutegen, path), wanted(head(path)["verdict"], "simt")
                failed += verdict not in want
                print(f"{'ok' if verdict in want else 'not ok'} {number} - {what} {path.stem}: {verdict}", flush=True)
                most = max(most, uses_of_oracles(cutegen))
        finally:
            subprocess.run([cutegen, "server", "stop"], capture_output=True, check=False)
    shared = most > count
    failed += not shared
    print(f"{'ok' if shared else 'not ok'} {2 * count + 1} - one oracle judged {most} of them")
    print(f"# {2 * count} verdicts in {time.monotonic() - start:.0f} s, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
