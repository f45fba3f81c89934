#!/usr/bin/env python3
"""Has every cheat of this folder judged, and says which got away.

    tests/cheats/run.py CUTEGEN [--device simt|cuda:0] [--jobs 2] [--apart] [--table FILE] [--at COMMIT] [--accept] [--quick] [--triton|--cutedsl] [NAME...]

A cheat is one candidate, .cu or .py. Its first lines say what it is and what must become of it:

    // zeros: an answer that was not computed
    // verdict: wrong values            one of several: a|b; by device: a (simt), b (cuda)
    // task: rows                       tasks/rows.py; default: gate
    // says: line|barrier               a regular expression that the evidence must match
    // device: cuda                     only there; default: both
    // flags: --run-deadline 5          for cutegen eval
    // accept: race                     with --accept (the final acceptance on a GPU): the verdict then
    // not faster: honest               on a GPU, where both pass: it gains nothing over that one

--triton, --cutedsl: the candidates of that folder instead of the others. --quick: compute-sanitizer only where the verdict needs it. --apart: every job has a warm server of its own and, where mounts
are permitted, a GPU lease of its own, so that none waits for another; cheats whose times are compared come last, alone.
--table: rows of FILE that were not judged now stay, with the commit they were judged at; so does all other text.
Prints TAP. Standard library only.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DEADLINE_S = 3600
NOISE = 0.06  # two judgements of one kernel of microseconds, a few at a time
NEEDS = {"triton": "Triton 3.5 or newer", "cutedsl": "nvidia-cutlass-dsl (CUTEGEN_DSL_PYTHON)"}
COLUMNS = "| cheat | verdict | s | commit | what the judge said |"
OWN_LOCKS = ["sh", "-c", 'mount -t tmpfs none /run/lock && exec "$@"', "sh"]


class Lanes:
    """Warm servers of this test's own; a judgement borrows one."""

    def __init__(self, cutegen: str, work: str, count: int, apart: bool) -> None:
        self.cutegen, self.prefix = cutegen, own_locks() if apart else []
        self.free: queue.LifoQueue[dict[str, str]] = queue.LifoQueue()  # one job at a time: always the same
        self.all = [
            {"CUTEGEN_RUNS": f"{work}/runs{k}", "CUTEGEN_RUNTIME": f"{work}/rt{k}", "CUTEGEN_SERVER": "yes"}
            for k in range(count if apart else 1)
        ]
        for k in range(count):
            self.free.put(self.all[k % len(self.all)])

    def run(self, command: list[str], alone: bool) -> subprocess.CompletedProcess[str]:
        lane = self.free.get()
        prefix = [] if alone else self.prefix
        try:
            return subprocess.run(
                prefix + command, env={**os.environ, **lane}, capture_output=True, text=True, timeout=DEADLINE_S, check=False
            )
        finally:
            self.free.put(lane)

    def stop(self) -> None:
        for lane in self.all:
            subprocess.run([self.cutegen, "server", "stop"], env={**os.environ, **lane}, capture_output=True, check=False)


def own_locks() -> list[str]:
    """What to put before a command that shall not see others' locks; empty where mounts are not permitted."""
    for unshare in (["unshare", "--mount"], ["unshare", "--user", "--map-root-user", "--mount"]):
        if shutil.which("unshare") and subprocess.run([*unshare, *OWN_LOCKS, "true"], capture_output=True, check=False).returncode == 0:
            return [*unshare, *OWN_LOCKS]
    return []


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


def judge(lanes: Lanes, path: Path, fields: dict[str, str], options: argparse.Namespace, alone: bool) -> dict[str, Any]:
    task = HERE / "tasks" / f"{fields.get('task', 'gate')}.py"
    command = [lanes.cutegen, "eval", str(task), str(path), "--device", options.device, "--json"]
    command += fields.get("flags", "").split()
    command += ["--accept"] if options.accept else []
    command += ["--compile", "none"] if options.quick else []
    if options.quick and not set(wanted(fields["verdict"], options.device.split(":")[0])) & {"race", "unsafe memory"}:
        command += ["--no-look"]
    start = time.monotonic()
    try:
        done = lanes.run(command, alone)
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


def is_timed(path: Path, cheats: list[tuple[Path, dict[str, str]]]) -> bool:
    """Is its time compared with another's?"""
    return any("not faster" in f and path.stem in (p.stem, f["not faster"]) for p, f in cheats)


class Table:
    """A file with a row per cheat, rewritten after each: what is there when the time is over."""

    def __init__(self, path: str | None, commit: str) -> None:
        self.path, self.commit = Path(path) if path else None, commit
        text = self.path.read_text() if self.path and self.path.exists() else ""
        if COLUMNS not in text:
            text += f"{COLUMNS}\n|---|---|---|---|---|\n"
        head, _, rest = text.partition(f"{COLUMNS}\n")
        lines = rest.splitlines(keepends=True)
        count = next((k for k, line in enumerate(lines) if not line.startswith("|")), len(lines))
        self.head, self.foot = f"{head}{COLUMNS}\n{lines[0]}", "".join(lines[count:])
        self.rows = {line.split("|")[1].strip(): line for line in lines[1:count]}

    def add(self, name: str, verdict: str, said: dict[str, Any]) -> None:
        what = re.sub(r"\s+", " ", said.get("summary") or "").replace("|", "\\|")
        self.rows[name] = f"| {name} | {verdict} | {said['seconds']:.1f} | {self.commit} | {what} |\n"
        if self.path:
            every = [p for pattern in ("*.cu", "foreign/*.py", "triton/*.py", "cutedsl/*.py") for p in sorted(HERE.glob(pattern))]
            order = {p.stem: k for k, p in enumerate(every)}
            rows = [self.rows[name] for name in sorted(self.rows, key=lambda name: order.get(name, -1)) if name in order]
            self.path.write_text(self.head + "".join(rows) + self.foot)


def report(number: int, path: Path, fields: dict[str, str], said: dict[str, Any], options: argparse.Namespace) -> tuple[bool, str]:
    """Prints a line of TAP: (as it must be, the verdict for the table)."""
    kind = options.device.split(":")[0]
    want = wanted(fields["accept" if options.accept and "accept" in fields else "verdict"], kind)
    good = said["verdict"] in want or (want == ["any"] and not said["verdict"].startswith("("))  # "(": no verdict at all
    told = kind != "simt" or re.search(fields.get("says", ""), said["evidence"]) is not None
    print(f"{'ok' if good and told else 'not ok'} {number} - {path.stem}: {said['verdict']}", flush=True)
    if not good:
        print(f"# wanted {' or '.join(want)}: {said['evidence'][:1500]}")
    elif not told:
        print(f"# the evidence lacks {fields['says']!r}: {said['evidence'][:1500]}")
    return good and told, said["verdict"] if good else f"{said['verdict']}, wanted: {' or '.join(want)}"


def chosen(options: argparse.Namespace) -> list[tuple[Path, dict[str, str]]]:
    own = options.language
    paths = sorted(HERE.glob(f"{own}/*.py")) if own else sorted(HERE.glob("*.cu")) + sorted(HERE.glob("foreign/*.py"))
    if options.names:  # in that order
        paths = sorted((p for p in paths if p.stem in options.names), key=lambda p: options.names.index(p.stem))
    cheats = [(p, head(p)) for p in paths]
    return [(p, f) for p, f in cheats if options.device.split(":")[0] in f.get("device", options.device)]


def has_language(name: str) -> bool:
    """In the Python that cutegen takes for it."""
    python = (name == "cutedsl" and os.environ.get("CUTEGEN_DSL_PYTHON")) or os.environ.get("CUTEGEN_PYTHON") or "python3"
    test = {
        "triton": "import triton; assert tuple(map(int, triton.__version__.split('.')[:2])) >= (3, 5)",
        "cutedsl": "import importlib.metadata as m; m.version('nvidia-cutlass-dsl')",
    }[name]
    return subprocess.run([python, "-I", "-c", test], capture_output=True, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cutegen")
    parser.add_argument("--device", default="simt")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--apart", action="store_true")
    parser.add_argument("--table")
    parser.add_argument("--at", default="")
    parser.add_argument("--accept", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--triton", dest="language", action="store_const", const="triton")
    parser.add_argument("--cutedsl", dest="language", action="store_const", const="cutedsl")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    if options.language and not has_language(options.language):
        print(f"1..0 # SKIP needs {NEEDS[options.language]}")
        return 0
    cheats = chosen(options)
    table = Table(options.table, options.at)
    failed = number = 0
    times: dict[str, float] = {}
    alone = [c for c in cheats if options.apart and is_timed(c[0], cheats)]
    with tempfile.TemporaryDirectory() as work:
        lanes = Lanes(options.cutegen, work, options.jobs, options.apart)
        for part, jobs in (([c for c in cheats if c not in alone], options.jobs), (alone, 1)):
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                asked = {pool.submit(judge, lanes, path, fields, options, part is alone): (path, fields) for path, fields in part}
                for done in concurrent.futures.as_completed(asked):
                    (path, fields), said, number = asked[done], done.result(), number + 1
                    good, verdict = report(number, path, fields, said, options)
                    failed += not good
                    table.add(path.stem, verdict, said)
                    times[path.stem] = said.get("us", 0.0) if options.device != "simt" and said["verdict"] == "pass" else 0.0
        lanes.stop()
    compared = gains(cheats, times)
    for number, (good, sentence) in enumerate(compared, len(cheats) + 1):
        print(f"{'ok' if good else 'not ok'} {number} - {sentence}")
        failed += not good
    print(f"1..{len(cheats) + len(compared)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
