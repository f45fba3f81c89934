#!/usr/bin/env python3
"""Judges every example with a right kernel, which must pass, and with a wrong one, which must get its verdict.

    tests/examples/judge_all.py CUTEGEN [--device simt|cuda:0] [--as GPU,...] [--arch 80] [--jobs 2] [--table FILE] [--wrong N] [--every M]
                                [--sample K] [--kernels FOLDER] [NAME...]

The right kernel is NAME.cu of this folder, or else the built-in engineer's first one. The wrong kernel is the right one with a
second kernel behind it that spoils the result in one of several ways (WAYS); each example gets the next way, or N of them with --wrong N.
With --every M only each Mth example has a wrong kernel, and these take the ways in turn. With --sample K only each Kth example is
judged, and those with a kernel of this folder. With several GPUs each example is judged as each of them; wrong kernels as the last.
Prints TAP. Standard library only.
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
ROOT = HERE.parent.parent
DEADLINE_S = 3600

# what is done to the output y of n elements (and to the bytes x of the input), by thread i of many, and the verdicts for it
WAYS: list[tuple[str, str, str]] = [
    ("one element off", "if (i == n / 2) y[i] = T(float(y[i]) + 0.25f + 0.25f * fabsf(float(y[i])));", "wrong values"),
    ("the last element missed", "if (i == n - 1) ((M *)y)[i] = M(MARK);", "not written"),
    ("a little off everywhere", "if (i < n) y[i] = T(float(y[i]) * (sizeof(T) == 2 ? 1.03f : 1.001f));", "imprecise|wrong values"),
    ("one column too far", "if (i == 0) for (int64_t k = 0; k < 64 && k + 1 < n; k++) y[k] = T(float(y[k + 1]) + 0.0625f); if (i == 0 && n == 1) y[0] = T(0.0f);", "wrong values"),
    ("one NaN", "if (i == n / 3) y[i] = T(__int_as_float(0x7fc00000));", "non-finite"),
    ("past the end", "if (i == n) y[i] = T(1.0f);", "unsafe memory|guard hit"),
    ("the input changed", "if (i == 0) const_cast<unsigned char *>(x)[1] ^= 1;", "input modified"),
]
WHOLE_NUMBERS = [  # what can be done to integers
    ("one element off", "if (i == n / 2) y[i] = T(y[i] + 1);", "wrong values"),
    ("the last element missed", "if (i == n - 1) ((M *)y)[i] = M(MARK);", "not written"),
    ("past the end", "if (i == n) y[i] = T(1);", "unsafe memory|guard hit"),
    ("the input changed", "if (i == 0) const_cast<unsigned char *>(x)[1] ^= 1;", "input modified"),
]
# dtype of the output -> its type, the type and bits of an unwritten element (oracle/buffers.py)
TYPES = {
    "f32": ("float", "unsigned", "0x7fa5c0deu"),
    "f16": ("cute::half_t", "unsigned short", "0x7da5"),
    "bf16": ("cute::bfloat16_t", "unsigned short", "0x7fa5"),
    "f64": ("double", "unsigned long long", "0x7ff4a5c0dea5c0deull"),
    "i64": ("int64_t", "unsigned long long", "0x7fa5c0de7fa5c0deull"),
    "i32": ("int", "unsigned", "0x7fa5c0deu"),
}

DEVICE_HALF = """
using T = %s;
using M = %s;
constexpr M MARK = %s;
__global__ void spoil(unsigned char const *x, T *y, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    (void)x;
    %s
}
"""
HOST_HALF = """
CUTEGEN_PLAN(call)
{
    int64_t n = cutegen_numel(&call->out[0]);

    CUTEGEN_TRY(right(call));
    return CUTEGEN_LAUNCH(call, (spoil), cutegen_dim3(n / 256 + 1, 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(unsigned char const, &call->in[0]), CUTEGEN_DATA(void, &call->out[0]), n);
}
"""


def spoilt(source: str, dtype: str, way: str) -> str:
    """The kernel with `spoil` launched after it."""
    host = re.search(r"#ifdef CUTEGEN_HOST\b", source)
    assert host, "no CUTEGEN_HOST half"
    first, second = source[: host.start()], source[host.start() :]
    ends = [m.start() for m in re.finditer(r"^#endif", first, re.M)]
    first = first[: ends[-1]] + DEVICE_HALF % (*TYPES[dtype], way) + first[ends[-1] :]
    second, count = re.subn(r"CUTEGEN_PLAN\(call\)", "static int right(struct cutegen_call *call)", second, count=1)
    assert count == 1, "no CUTEGEN_PLAN(call)"
    ends = [m.start() for m in re.finditer(r"^#endif", second, re.M)]
    return first + second[: ends[-1]] + HOST_HALF + second[ends[-1] :]


class Example:
    def __init__(self, number: int, name: str, options: argparse.Namespace, work: Path) -> None:
        self.number, self.name, self.options, self.work = number, name, options, work
        self.draws = "2"
        self.card: str | None = None
        self.task = ROOT / "examples" / f"{name}.py"
        self.lines: list[tuple[bool, str, str]] = []  # good, sentence, comment
        self.row: list[str] = []

    def ask(self, *words: str) -> tuple[int, str]:
        env = {**os.environ, "CUTEGEN_RUNS": str(self.work / self.name)}
        if self.card:
            env["CUTEGEN_SIMT_AS"] = self.card
        if self.options.arch:
            env["CUTEGEN_SIMT_ARCH"] = self.options.arch
        try:
            done = subprocess.run([self.options.cutegen, *words], capture_output=True, text=True, timeout=DEADLINE_S, env=env, check=False)
        except subprocess.TimeoutExpired:
            return -1, "no end within the deadline"
        return done.returncode, done.stdout or done.stderr

    def eval(self, path: Path) -> dict[str, Any]:
        start = time.monotonic()
        code, text = self.ask("eval", str(self.task), str(path), "--device", self.options.device, "--json", "--draws", self.draws, "--no-look")
        try:
            said = json.loads(text)
        except ValueError:
            said = {"verdict": f"(exit {code})", "detail": text}
        if "error" in said:
            said = {"verdict": "(error)", "detail": str(said["error"])}
        said["seconds"] = time.monotonic() - start
        return said

    def right(self) -> tuple[Path | None, dict[str, Any]]:
        """A right kernel and its judgement."""
        for folder in [HERE, *(Path(k) for k in self.options.kernels)]:
            if (folder / f"{self.name}.cu").exists():
                path = folder / f"{self.name}.cu"
                return path, self.eval(path)
        code, text = self.ask("run", str(self.task), "--device", self.options.device, "--depth", "0", "--no-report", "--json", "--draws", self.draws)
        _, source = self.ask("show", "last", "--source")
        best = {}
        for line in text.splitlines():
            if '"result"' in line:
                best = json.loads(line).get("best") or {}
        if code or "CUTEGEN_PLAN" not in source:
            self.lines.append((False, "the built-in engineer writes a kernel", text[-1500:]))
            return None, {}
        path = self.work / f"{self.name}.cu"
        path.write_text(source)
        return path, {"verdict": "pass", "measurement": best.get("measurement")}

    def output_dtype(self) -> str:
        _, text = self.ask("describe", str(self.task), "--device", self.options.device, "--json")
        return json.loads(text)["outputs"][0]["dtype"]

    def judge(self) -> "Example":
        cards: list[str | None] = [*self.options.card.split(",")] if self.options.card else [None]
        for self.card in cards:
            kernel, said = self.right()
            if kernel is None:
                return self
            where = f" as {self.card}" if len(cards) > 1 else ""
            self.lines.append((said["verdict"] == "pass", f"a right kernel passes{where}", f"{said['verdict']}: {said.get('detail')}"))
        measured = said.get("measurement") or {}
        self.row = [self.name, "own" if kernel.parent == HERE else "built in", said["verdict"], f"{measured.get('time_us') or 0:.2f}{'*' if measured.get('modelled') else ''}"]
        self.row.append(" ".join(f"{b['name']} {b['cold_us']:.1f}" for b in measured.get("baselines") or []))
        dtype = said["task"]["outputs"][0]["dtype"] if "task" in said else self.output_dtype()
        ways = WHOLE_NUMBERS if dtype.startswith(("i", "u", "b")) and dtype != "bf16" else WAYS
        wrong = self.options.wrong if self.number % self.options.every == 0 else 0
        for turn in range(wrong):
            what, way, want = ways[(self.number // self.options.every + turn) % len(ways)]
            path = self.work / f"{self.name}-{turn}.cu"
            path.write_text(spoilt(kernel.read_text(), dtype, way))
            said = self.eval(path)
            good = said["verdict"] in want.split("|")
            self.lines.append((good, f"{what}: {said['verdict']}", f"wanted {want}: {said.get('detail')}"))
            self.row.append(f"{what}: {said['verdict']}{'' if good else ' (!)'}")
        return self


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("cutegen")
    parser.add_argument("--device", default="simt")
    parser.add_argument("--as", dest="card", help="the GPU that simt stands in for")
    parser.add_argument("--arch", help="what simt's code is built for")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--wrong", type=int, default=1)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sample", type=int, default=1)
    parser.add_argument("--table")
    parser.add_argument("--kernels", action="append", default=[], help="a folder with more right kernels, NAME.cu")
    parser.add_argument("names", nargs="*")
    options = parser.parse_intermixed_args()
    every = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))
    names = options.names or [n for k, n in enumerate(every) if k % options.sample == 0 or (HERE / f"{n}.cu").exists()]
    count = failed = 0
    table = ["| example | kernel | verdict | us | baselines us | wrong kernels |", "|---|---|---|---|---|---|"]
    rows: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        # the suite's warm server (tests/run.sh), or one of its own
        own = {"CUTEGEN_RUNTIME": f"{folder}/rt"}
        os.environ.update(CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", own["CUTEGEN_RUNTIME"]), CUTEGEN_SERVER="yes")
        examples = [Example(every.index(n), n, options, Path(folder)) for n in names]  # in the order given; each with its own way to be wrong
        for done in concurrent.futures.as_completed([pool.submit(e.judge) for e in examples]):
            example = done.result()
            for good, sentence, comment in example.lines:
                count += 1
                failed += not good
                print(f"{'ok' if good else 'not ok'} {count} - {example.name}: {sentence}", flush=True)
                if not good:
                    print("\n".join(f"# {line}" for line in comment[:1500].splitlines()))
            rows[example.number] = "| " + " | ".join([*example.row[:5], "; ".join(example.row[5:])]) + " |"
            if options.table:  # what is there when the time is over
                Path(options.table).write_text("\n".join(table + [rows[k] for k in sorted(rows)]) + "\n")
        subprocess.run([options.cutegen, "server", "stop"], env={**os.environ, **own}, capture_output=True, check=False)
    print(f"1..{count}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
