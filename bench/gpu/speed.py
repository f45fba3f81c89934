"""How long an edit takes until its verdict: `cutegen eval` against load_inline in a fresh process.

    python3 bench/gpu/speed.py CUTEGEN EXAMPLES CUTLASS_INCLUDE OUT.md [--no-inline]

The same two kernels both ways, in one run, one after the other. An edit is a comment with a new number: the source differs,
so nothing comes from the cache. Medians of the repeats; load_inline is run once per kernel.
"""
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
with_inline = "--no-inline" not in sys.argv
examples = pathlib.Path(examples)
work = pathlib.Path(tempfile.mkdtemp(prefix="cutegen-speed-"))
env = {**os.environ, "CUTEGEN_CACHE": str(work / "cache"), "CUTEGEN_RUNS": str(work / "runs"), "CUTEGEN_RUNTIME": str(work / "rt")}
CASES = [
    ("pointwise (swish)", examples / "swish.py", examples / "kernels/swish.cu", 20, 3),
    ("TiledMMA GEMM", examples / "square_matmul.py", here / "kernels/tiled_mma.cu", 7, 2),
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
    path.write_text(kernel.read_text() + f"// edit {number}\n")
    return path


rows = []
number = 0
for name, task, kernel, wanted, edits in CASES:
    first, _ = evaluate(task, kernel)
    cold, cached, builds = [], [], []
    time.sleep(0.5)
    for _ in range(edits):
        number += 1
        path = edited(kernel, number)
        seconds, answer = evaluate(task, path)
        cold.append(seconds)
        builds.append(answer.get("build_ms", 0) / 1000)
        for _ in range(3):
            time.sleep(0.4)  # as quick as any hand or agent
            seconds, answer = evaluate(task, path)
            cached.append(seconds)
    alone, _ = evaluate(task, path, "--no-server")
    usual = None
    if with_inline:
        begin = time.time()
        done = subprocess.run([sys.executable, str(here / "inline.py"), str(task), str(kernel), cutlass], capture_output=True, text=True)
        usual = time.time() - begin
        print(done.stdout.strip() or done.stderr[-800:], flush=True)
    row = (name, first, statistics.median(cold), statistics.median(builds), statistics.median(cached), max(cached), alone, usual, wanted)
    print(row, "edits", [f"{s:.2f}" for s in cold], "cached", [f"{s:.2f}" for s in cached], flush=True)
    rows.append(row)
print(subprocess.run([cutegen, "server", "status"], env=env, capture_output=True, text=True).stdout)
subprocess.run([cutegen, "eval", str(CASES[0][1]), str(CASES[0][2]), "--device", "cuda:0", "-vv"], env=env)
subprocess.run([cutegen, "server", "stop"], env=env)
with open(out, "w") as f:
    f.write("| kernel | first, nothing warm | edit to verdict, warm builder | of that the build | unchanged source (worst) | without server | load_inline, fresh process | faster | wanted |\n")
    f.write("|---|---|---|---|---|---|---|---|---|\n")
    for name, first, cold, build, cached, worst, alone, usual, wanted in rows:
        ratio = f"{usual / cold:.0f}x" if usual else "-"
        f.write(f"| {name} | {first:.2f} s | {cold:.2f} s | {build:.2f} s | {cached:.2f} s ({worst:.2f}) | {alone:.2f} s | {usual or 0:.1f} s | {ratio} | {wanted}x |\n")
print(open(out).read())
