#!/usr/bin/env python3
"""Has every cheat of this folder judged, and says which got away.

    tests/cheats/run.py CUTEGEN [--device simt|cuda:0] [--jobs 2] [--table FILE] [--accept] [--quick] [NAME...]

A cheat is one candidate, .cu or .py. Its first lines say what it is and what must become of it:

    // zeros: an answer that was not computed
    // verdict: wrong values            one of several: a|b; by device: a (simt), b (cuda)
    // task: rows                       tasks/rows.py; default: gate
    // says: line|barrier               a regular expression that the evidence must match
    // device: cuda                     only there; default: both
    // flags: --run-deadline 5          for cutegen eval
    // accept: race                     with --accept (the final acceptance on a GPU): the verdict then
    // not faster: honest               on a GPU, where both pass: it gains nothing over that one

--quick: compute-sanitizer only where the verdict needs it. Prints TAP. Standard library only.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DEADLINE_S = 3600
NOISE = 0.06  # two judgements of one kernel of microseconds, a few at a time


def head(path: Path) -> dict[str, str]:
    """The fields of the first comment lines."""
    fields: dict[str, str] = {}
    for line in path.read_text().splitlines():
        line = re.sub(r"^(//|#)\s?", "", line) if line[:1] in "/#" else ""
        name, colon, value = line.partition(": ")
        if not colon:
            break
        fields[name if fields else "what"] = value.strip() if fields else line
    return fields


def wanted(text: str, device: str) -> list[str]:
    """The verdicts that do, on this device: "a|b" or "a (simt), b|c (cuda: why)"."""
    for part in re.findall(r"((?:pass, unattested|[^,()])+)\((\w+)[^)]*\)", text):
        if part[1] == device:
            return [word.strip() for word in part[0].split("|")]
    return [word.strip() for word in text.split("|")]


def judge(cutegen: str, path: Path, fields: dict[str, str], options: argparse.Namespace) -> dict[str, Any]:
    task = HERE / "tasks" / f"{fields.get('task', 'gate')}.py"
    command = [cutegen, "eval", str(task), str(path), "--device", options.device, "--json"]
    command += fields.get("flags", "").split()
    command += ["--accept"] if options.accept else []
    if options.quick and not set(wanted(fields["verdict"], options.device.split(":")[0])) & {"race", "unsafe memory"}:
        command += ["--no-look"]
    start = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    except subprocess.TimeoutExpired:
        return {"verdict": "(the judge did not end)", "seconds": DEADLINE_S, "evidence": ""}
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"verdict": f"(no answer, exit {done.returncode})", "detail": done.stdout + done.stderr}
    if "error" in said:
        said = {"verdict": "(error)", "detail": str(said["error"])}
    return {
        "verdict": said.get("verdict", "?"),
        "seconds": time.monotonic() - start,
        "evidence": json.dumps(said) if "findings" in said else str(said.get("detail")),
        "summary": said.get("summary", ""),
        "us": (said.get("measurement") or {}).get("time_us") or 0.0,
    }


def gains(cheats: list[tuple[Path, dict[str, str]]], times: dict[str, float]) -> list[tuple[bool, str]]:
    """For each cheat that must not be faster than another: is that so, and the sentence."""
    pairs = [(p.stem, f["not faster"]) for p, f in cheats if times.get(p.stem) and times.get(f.get("not faster", ""))]
    return [
        (times[name] > (1 - NOISE) * times[other], f"{name}: {times[name]:.2f} us, no faster than {other}: {times[other]:.2f} us")
        for name, other in pairs
    ]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cutegen")
    parser.add_argument("--device", default="simt")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    kind = options.device.split(":")[0]
    paths = sorted(HERE.glob("*.cu")) + sorted(HERE.glob("foreign/*.py"))
    if options.names:  # in that order
        paths = sorted((p for p in paths if p.stem in options.names), key=lambda p: options.names.index(p.stem))
    cheats = [(p, head(p)) for p in paths]
    cheats = [(p, f) for p, f in cheats if kind in f.get("device", kind)]
    failed = 0
    table = ["| cheat | verdict | s | what the judge said |", "|---|---|---|---|"]
    rows: dict[int, str] = {}
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as work:
        # a warm server of this test's own
        os.environ.update(CUTEGEN_RUNS=f"{work}/runs", CUTEGEN_RUNTIME=f"{work}/rt", CUTEGEN_SERVER="yes")
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            asked = {pool.submit(judge, options.cutegen, path, fields, options): place for place, (path, fields) in enumerate(cheats)}
            for number, done in enumerate(concurrent.futures.as_completed(asked), 1):
                place, said = asked[done], done.result()
                path, fields = cheats[place]
                want = wanted(fields["accept" if options.accept and "accept" in fields else "verdict"], kind)
                good = said["verdict"] in want or want == ["any"]
                told = kind != "simt" or re.search(fields.get("says", ""), said["evidence"]) is not None
                failed += not (good and told)
                times[path.stem] = said.get("us", 0.0) if kind == "cuda" and said["verdict"] == "pass" else 0.0
                print(f"{'ok' if good and told else 'not ok'} {number} - {path.stem}: {said['verdict']}", flush=True)
                if not good:
                    print(f"# wanted {' or '.join(want)}: {said['evidence'][:1500]}")
                elif not told:
                    print(f"# the evidence lacks {fields['says']!r}: {said['evidence'][:1500]}")
                rows[place] = f"| {path.stem} | {said['verdict']} | {said['seconds']:.1f} | {said.get('summary') or ''} |".replace("\n", " ")
                if options.table:  # what is there when the time is over
                    Path(options.table).write_text("\n".join(table + [rows[k] for k in sorted(rows)]) + "\n")
        subprocess.run([options.cutegen, "server", "stop"], capture_output=True, check=False)
    compared = gains(cheats, times)
    for number, (good, sentence) in enumerate(compared, len(cheats) + 1):
        print(f"{'ok' if good else 'not ok'} {number} - {sentence}")
        failed += not good
    print(f"1..{len(cheats) + len(compared)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
