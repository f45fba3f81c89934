#!/usr/bin/env python3
"""Judges what every recipe writes, on simt, as each GPU that simt stands in for and with code built for it.

    tests/expert/judge_cards.py CUTEGEN LADDER [--jobs 2] [--seed 1] [--part I/N] [--seconds S] [--sets NAME:COUNT,...] [--on 80,89,...]

Tasks are generated (SETS). The built-in engineer's last kernel for each kind of code is built and judged as each card that
runs it (ON). Prints a line for each judgement and then tables: cards by code, and recipes by card. Refused: the plan asks for
more than the card has, or says that it is not for these sizes. With --seconds nothing new begins after that time, and the
tables say how much is missing. Exit 1: something was wrong or refused. Standard library only.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DEADLINE_S = 3600
SETS = {"generate": 24, "convolutions": 8, "attentions": 8, "networks": 9, "gemm_tasks": 16, "modules": 12}
CARDS = ["a100", "rtx4090", "h100", "h200", "b200", "rtx5090"]
ON = {"80": CARDS, "120a": ["rtx5090"], "89": ["rtx4090"], "100a": ["b200"], "90a": ["h100", "h200"], "86": ["rtx4090"], "120": ["rtx5090"]}
REFUSED = {"bad launch", "bad plan"}


class Judge:
    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.options, self.work = options, work
        self.began = time.monotonic()
        self.lock = threading.Lock()
        self.runtimes: dict[int, str] = {}
        self.rows: list[tuple[str, str, str, str, str]] = []  # recipe, task, code, card, verdict
        self.left_out = 0

    def over(self) -> bool:
        return self.options.seconds > 0 and time.monotonic() - self.began > self.options.seconds

    def ask(self, *words: str) -> tuple[int, str]:
        """A command; each thread has a server of its own."""
        with self.lock:
            runtime = self.runtimes.setdefault(threading.get_ident(), str(self.work / f"rt{len(self.runtimes)}"))
        env = {**os.environ, "CUTEGEN_RUNTIME": runtime, "CUTEGEN_SERVER": "yes", "CUTEGEN_RUNS": str(self.work / "runs")}
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, env=env, check=False)
        except subprocess.TimeoutExpired:
            return -1, "no end within the deadline"
        return done.returncode, done.stdout if done.returncode == 0 or done.stdout else done.stderr

    def describe(self, task: Path) -> Path:
        described = self.work / f"{task.parent.name}-{task.stem}.json"
        with self.lock:
            own = self.work / f"{described.stem}.lock"
            lock = self.__dict__.setdefault("locks", {}).setdefault(own, threading.Lock())
        with lock:
            if not described.exists():
                code, text = self.ask(self.options.cutegen, "describe", str(task), "--device", "simt", *flags(task), "--json")
                described.write_text(text if code == 0 else "")
        return described

    def note(self, recipe: str, task: Path, arch: str, card: str, verdict: str, detail: str) -> None:
        with self.lock:
            name = f"{task.parent.name}/{task.stem}"
            self.rows.append((recipe, name, arch, card, verdict))
            print(f"{name} ({recipe}), sm_{arch} as {card}: {verdict}{'' if verdict == 'pass' else ', ' + detail[:300]}", flush=True)

    def judge(self, task: Path, arch: str) -> None:
        if self.over():
            with self.lock:
                self.left_out += len(ON[arch])
            return
        described = self.describe(task)
        if not described.read_text():
            self.note("none", task, arch, ON[arch][0], "not described", "")
            return
        kernels = self.work / arch / described.stem
        _, text = self.ask(self.options.ladder, str(described), str(kernels), *([] if arch == "80" else [f"sm_{arch}"]))
        written = sorted(kernels.glob("*.cu"), key=lambda p: int(p.name.split(".")[-2])) if kernels.is_dir() else []
        named = re.search(r"The (\w+) ladder", text)
        recipe = named.group(1) if named else "none"
        if not written:
            self.note(recipe, task, arch, ON[arch][0], "not written", text[-200:])
            return
        for card in ON[arch]:
            code, text = self.ask(
                self.options.cutegen, "eval", str(task), str(written[-1]), "--device", "simt", "--json", "--draws", "1", "--no-look",
                *flags(task), "--simt-as", card, "--simt-arch", arch,
            )  # fmt: skip
            try:
                said = json.loads(text)
            except ValueError:
                said = {"verdict": f"(exit {code})", "detail": text}
            self.note(recipe, task, arch, card, said.get("verdict") or "(error)", str(said.get("detail") or said.get("error")))


def flags(task: Path) -> list[str]:
    scale = [] if task.parent.name == "gemm_tasks" else ["--no-scale"]
    return scale + (["--baseline", "strict"] if task.parent.name == "convolutions" else [])


def tasks_of(options: argparse.Namespace, work: Path) -> list[Path]:
    part, parts = (int(x) for x in options.part.split("/"))
    found: list[Path] = []
    for name, count in options.sets.items():
        program = ROOT / "bench" / f"{name}.py" if name == "gemm_tasks" else HERE / f"{name}.py"
        folder = work / name
        subprocess.run([sys.executable, str(program), str(folder), str(count), str(options.seed)], check=True, env={**os.environ, "WRITTEN": "1"})
        every = sorted(folder.glob("*.py"))  # some write all they have
        found += every[:: max(1, len(every) // count)][:count]
    return [t for k, t in enumerate(found) if k % parts == part]


def kind(verdict: str) -> str:
    return "right" if verdict == "pass" else "refused" if verdict in REFUSED else "wrong"


def tables(judge: Judge) -> None:
    by_card: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    by_recipe: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for recipe, _, arch, card, verdict in judge.rows:
        by_card[(card, arch)][kind(verdict)] += 1
        by_recipe[recipe][card if kind(verdict) == "right" else "not"] += 1
    print("\n| card | code | right | wrong | refused |\n|---|---|---|---|---|")
    for card, arch in sorted(by_card, key=lambda k: (CARDS.index(k[0]), k[1])):
        n = by_card[(card, arch)]
        print(f"| {card} | sm_{arch} | {n['right']} | {n['wrong']} | {n['refused']} |")
    print(f"\n| recipe | {' | '.join(CARDS)} | wrong or refused |\n|---|{'---|' * len(CARDS)}---|")
    for recipe in sorted(by_recipe):
        print(f"| {recipe} | {' | '.join(str(by_recipe[recipe][c]) for c in CARDS)} | {by_recipe[recipe]['not']} |")
    print(f"\n{len(judge.rows)} judgements, {judge.left_out} left out, {time.monotonic() - judge.began:.0f} s")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cutegen")
    parser.add_argument("ladder")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--sets", default="")
    parser.add_argument("--on", default="")
    options = parser.parse_args()
    options.cutegen, options.ladder = os.path.abspath(options.cutegen), os.path.abspath(options.ladder)
    options.sets = {s.split(":")[0]: int(s.split(":")[1]) for s in options.sets.split(",")} if options.sets else SETS
    archs = options.on.split(",") if options.on else list(ON)
    os.environ.setdefault("CUTEGEN_HOME", str(ROOT))
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        judge = Judge(options, Path(folder))
        tasks = tasks_of(options, judge.work)
        for done in [pool.submit(judge.judge, task, arch) for arch in archs for task in tasks]:
            done.result()
        for runtime in judge.runtimes.values():
            subprocess.run([options.cutegen, "server", "stop"], env={**os.environ, "CUTEGEN_RUNTIME": runtime}, capture_output=True, check=False)
        tables(judge)
    return 0 if judge.rows and all(row[4] == "pass" for row in judge.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
