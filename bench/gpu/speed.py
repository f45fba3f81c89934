"""How long an edit takes until its verdict: `cutegen eval` against load_inline in a fresh process.

    python3 bench/gpu/speed.py CUTEGEN EXAMPLES CUTLASS_INCLUDE OUT.md [--no-inline]

The same two kernels both ways, in one run: judged once with nothing warm; then, some seconds of thinking later, edited and judged.
An edit is a comment with a new number among the device code, so nothing comes from the cache. Medians of the repeats; load_inline is run once per kernel, the two beside each other and after everything else.
"""
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
cutegen, examples, cutlass, out = sys.argv[1:5]
THINKING_S = 13  # between a first verdict and the next edit; the builder learns meanwhile (src/toolchain/precompiler.h)
with_inline = "--no-inline" not in sys.argv
examples = pathlib.Path(examples)
work = pathlib.Path(tempfile.mkdtemp(prefix="cutegen-speed-"))
env = {**os.environ, "CUTEGEN_CACHE": str(work / "cache"), "CUTEGEN_RUNS": str(work / "runs"), "CUTEGEN_RUNTIME": str(work / "rt")}
CASES = [
    ("pointwise (swish)", examples / "swish.py", examples / "kernels/swish.cu", 20, 5),
    ("TiledMMA GEMM", examples / "square_matmul.py", here / "kernels/tiled_mma.cu", 7, 5),
]


def evaluate(task, kernel, *flags):
    """(seconds, answer)"""
    begin = time.time()
    done = subprocess.run(
        [cutegen, "eval", str(task), str(kernel), "--device", "cuda:0", "--json", *flags],
        env=env, capture_output=True, text=True,
    )
    seconds = time.time() - begin
    answer = json.loads(done.stdout.strip().splitlines()[-1]) if done.stdout.strip() else {}
    if answer.get("verdict") != "pass":
        print("NOT A PASS:", answer.get("verdict"), answer.get("summary"), done.stderr[-500:])
    return seconds, answer


def edited(kernel, number):
    path = work / f"edit-{number}.cu"
    path.write_text(kernel.read_text().replace("#ifdef CUTEGEN_DEVICE\n", f"#ifdef CUTEGEN_DEVICE\n// edit {number}\n", 1))
    return path


def first(case):
    return evaluate(case[1], case[2])[0]


firsts = [first(case) for case in CASES]  # nothing is warm yet
learned_at = time.time() + THINKING_S
rows = []
number = 0
for (name, task, kernel, wanted, edits), begun in zip(CASES, firsts):
    cold, cached, builds = [], [], []
    if wanted == 7:
        time.sleep(max(0, learned_at - time.time()))
    for _ in range(edits):
        number += 1
        path = edited(kernel, number)
        seconds, answer = evaluate(task, path)
        cold.append(seconds)
        builds.append(answer.get("build_ms", 0) / 1000)
        for _ in range(2):
            time.sleep(0.4)  # as quick as any hand or agent
            seconds, answer = evaluate(task, path)
            cached.append(seconds)
    restless = [evaluate(task, path)[0] for _ in range(8)]  # as quick as a script
    row = (name, begun, statistics.median(cold), statistics.median(builds), cached, restless, wanted)
    print(row, "edits", [f"{s:.2f}" for s in cold], flush=True)
    rows.append(row)
print(subprocess.run([cutegen, "server", "status"], env=env, capture_output=True, text=True).stdout, flush=True)
subprocess.run([cutegen, "server", "stop"], env=env, capture_output=True)


def inline(case):
    """Seconds of the usual way, or None."""
    begin = time.time()
    done = subprocess.run([sys.executable, str(here / "inline.py"), str(case[1]), str(case[2]), cutlass], capture_output=True, text=True)
    print(done.stdout.strip() or done.stderr[-800:], flush=True)
    return None if done.returncode else time.time() - begin


with concurrent.futures.ThreadPoolExecutor() as pool:
    usuals = list(pool.map(inline, CASES)) if with_inline else [None for _ in CASES]
with open(out, "w") as f:
    f.write("| kernel | first, nothing warm | edit to verdict, warm builder | of that the build | unchanged source (worst) | eight times without a pause (worst) | load_inline, fresh process | faster | wanted |\n")
    f.write("|---|---|---|---|---|---|---|---|---|\n")
    for (name, begun, cold, build, cached, restless, wanted), usual in zip(rows, usuals):
        ratio = f"{usual / cold:.1f}x" if usual else "-"
        paused, unpaused = (f"{statistics.median(v):.2f} s ({max(v):.2f})" for v in (cached, restless))
        f.write(f"| {name} | {begun:.2f} s | {cold:.2f} s | {build:.2f} s | {paused} | {unpaused} | {usual or 0:.1f} s | {ratio} | {wanted}x |\n")
print(open(out).read())
