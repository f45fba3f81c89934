"""Are the times good: the same kernel judged 10 times, the same under two names, and a plain event loop beside it.

    python3 bench/gpu/timing.py CUTEGEN EXAMPLES OUT.md [PLAIN-LOOP [SIZES]]

Three sizes of swish, so that a kernel of microseconds is among them. Spread: (largest - smallest) / median of the ten medians.
PLAIN-LOOP is timing.cu, built; without it, nvcc builds it here. It is run three times per size, and the median of its times counts.
SIZES: how many of the three sizes, from the smallest.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).resolve().parent
cutegen, examples, out = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
work = pathlib.Path(tempfile.mkdtemp(prefix="cutegen-timing-"))
env = {"CUTEGEN_CACHE": str(work / "cache"), **os.environ, "CUTEGEN_RUNS": str(work / "runs"), "CUTEGEN_RUNTIME": str(work / "rt")}
kernel = examples / "kernels/swish.cu"
twin = work / "twin.cu"
twin.write_text(kernel.read_text().replace("void swish(", "void twin(").replace("(swish<", "(twin<"))


def measure(path, sizes):
    done = subprocess.run(
        [cutegen, "eval", str(examples / "swish.py"), str(path), "--device", "cuda:0", "--json", *sizes],
        env=env, capture_output=True, text=True,
    )
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    if answer["verdict"] != "pass":
        print("NOT A PASS", answer["verdict"], answer["summary"], done.stderr[-300:])
    return answer["measurement"]["time_us"], answer["measurement"]["warm_us"]


program = sys.argv[4] if len(sys.argv) > 4 else str(work / "timing")
if len(sys.argv) <= 4:
    subprocess.run(["nvcc", "-O3", "-arch=native", "-o", program, str(here / "timing.cu")], check=False)
rows = [json.loads(line) for n in 3 * (1 << 20, 1 << 24) for line in subprocess.run([program, str(n)], capture_output=True, text=True).stdout.splitlines()]
plain = {}
for n in {row["elements"] for row in rows}:
    plain[n] = {key: statistics.median(row[key] for row in rows if row["elements"] == n) for key in ("cold_us", "warm_us")}
with open(out, "w") as f:
    f.write("| elements | median of 10 (cold) | spread | twin differs by | plain loop, cold | off by | warm: ours | plain loop | off by |\n|---|---|---|---|---|---|---|---|---|\n")
    for batch, dim in ((1, 1 << 20), (128, 131072), (4096, 131072))[: int(sys.argv[5]) if len(sys.argv) > 5 else 3]:
        sizes = ["--set", f"BATCH={batch}", "--set", f"DIM={dim}"]
        ours, theirs = [], []
        for _ in range(10):
            ours.append(measure(kernel, sizes))
            theirs.append(measure(twin, sizes)) if len(theirs) < 5 else None
        cold, warm = ([t[i] for t in ours] for i in (0, 1))
        mine, other = statistics.median(cold), statistics.median(t[0] for t in theirs)
        loop = plain.get(batch * dim, {"cold_us": 1, "warm_us": 1})
        f.write(
            f"| {batch * dim} | {mine:.2f} us | {(max(cold) - min(cold)) / mine:.2%} | {abs(other - mine) / mine:.2%} | {loop['cold_us']:.2f} us "
            f"| {(mine - loop['cold_us']) / loop['cold_us']:+.2%} | {statistics.median(warm):.2f} us | {loop['warm_us']:.2f} us | {(statistics.median(warm) - loop['warm_us']) / loop['warm_us']:+.2%} |\n"
        )
        print(batch * dim, "cold", [f"{t:.2f}" for t in cold], "twin", [f"{t[0]:.2f}" for t in theirs], "warm", [f"{t:.2f}" for t in warm], loop, flush=True)
subprocess.run([cutegen, "server", "stop"], env=env)
print(open(out).read())
