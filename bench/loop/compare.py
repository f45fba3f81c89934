"""compare.py CUTEGEN [SEEDS] [CALLS] - search policies and profile schedules at equal model calls, on simt.

Every run gets the same task, the same stochastic model (stochastic.py) and the same budget of calls; what differs is the policy,
or the depth from which a profile is shown. Prints two tables in Markdown: the geometric mean of the best modelled time over the
seeds, its worst seed, and how many runs found a correct kernel.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
seeds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
calls = int(sys.argv[3]) if len(sys.argv) > 3 else 24
here = os.path.dirname(os.path.abspath(__file__))
task = os.path.join(here, "..", "..", "examples", "swish.py")
POLICIES = [("refine", []), ("beam of 3", ["--search", "beam"]),
            ("beam of 3, 3 calls at a time", ["--search", "beam", "--parallel-calls", "3"]),
            ("restarts, 3, of 9 depths", ["--search", "restarts", "--depth", "9"])]
SCHEDULES = [("never", ["--profile-from", "999"]), ("from depth 6", ["--profile-from", "6"]), ("from depth 1", ["--profile-from", "1"])]


def run(flags, seed):
    """The best modelled time in us, or None, and the calls made."""
    with tempfile.TemporaryDirectory(prefix="cutegen-compare-") as work:
        model = "exec:python3 %s/stochastic.py %d %s/draws" % (here, seed, work)
        said = subprocess.run([program, "run", task, "--model", model, "--device", "simt", "--draws", "1", "--budget-calls", str(calls),
                               "--depth", "99", "--patience", "0", "--floor-stop", "0", "--no-memory", "--no-report", "--runs",
                               work + "/runs", "--json"] + flags, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        best, made = None, 0
        for line in said.stdout.splitlines():
            event = json.loads(line)
            time_us = (event.get("measurement") or {}).get("time_us")
            if event.get("event") == "attempt" and event["judgement"]["verdict"] == "pass" and time_us:
                best = min(best or time_us, time_us)
        with open(work + "/draws") as f:
            made = len(f.read())
        return best, made


def table(title, rows):
    print("\n| %s | runs with a kernel | best time, geometric mean | worst seed | calls |\n|---|---|---|---|---|" % title)
    for name, flags in rows:
        found = [run(flags, seed) for seed in range(1, seeds + 1)]
        good = [t for t, _ in found if t]
        mean = math.exp(sum(map(math.log, good)) / len(good)) if good else float("nan")
        print("| %s | %d of %d | %.3f us | %.3f us | %.1f |" % (name, len(good), seeds, mean, max(good or [float("nan")]),
                                                               sum(c for _, c in found) / seeds), flush=True)


print("%d seeds, %d calls each, times modelled for an H200" % (seeds, calls))
table("policy", [(n, f + ["--profile-from", "999"]) for n, f in POLICIES])
table("profile shown", SCHEDULES)
