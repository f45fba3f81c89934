"""compare.py CUTEGEN RAW [SEEDS] [CALLS] [MINUTES] - search policies and profile schedules at equal model calls, on simt.

Every run gets a task, the stochastic model (stochastic.py) with a seed and a budget of calls; what differs is the policy, or the
depth from which a profile is shown. One line of JSON per run goes to the file RAW, seed by seed; runs that are there already are
not made again, and after MINUTES no new seed is begun. Then two tables in Markdown, of the seeds that are complete.

    compare.py --tables RAW         the tables alone

A run's figure is its best modelled time. Of each policy: the geometric mean by task, and over all tasks and seeds its ratio to the
first row's run with the same task and seed, with a 95 % interval (bootstrap over the pairs, its dice fixed).
"""
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
TASKS = ["swish", "row_sum", "square_matmul"]
# Name, flags. Policies see no profile, so that nothing else differs; the schedules refine.
RUNS = {
    "refine": ["--profile-from", "999"],
    "beam of 3": ["--search", "beam", "--profile-from", "999"],
    "beam of 3, 3 calls at a time": ["--search", "beam", "--parallel-calls", "3", "--profile-from", "999"],
    "restarts, 3, of 9 depths": ["--search", "restarts", "--depth", "9", "--profile-from", "999"],
    "from depth 6": ["--profile-from", "6"],
    "from depth 1": ["--profile-from", "1"],
    "as by default, of 16 depths": ["--depth", "16"],
}
POLICIES = ["refine", "beam of 3", "beam of 3, 3 calls at a time", "restarts, 3, of 9 depths"]
SCHEDULES = ["refine", "from depth 6", "from depth 1", "as by default, of 16 depths"]


def run(program, task, flags, seed, calls):
    """The best modelled time in us, or None, and the calls made."""
    with tempfile.TemporaryDirectory(prefix="cutegen-compare-") as work:
        model = "exec:python3 %s/stochastic.py %d %s/draws task=%s" % (here, seed, work, task)
        words = [program, "run", os.path.join(here, "..", "..", "examples", task + ".py"), "--model", model, "--device", "simt",
                 "--draws", "1", "--budget-calls", str(calls), "--depth", "99", "--patience", "0", "--floor-stop", "0", "--no-memory",
                 "--no-report", "--runs", work + "/runs", "--json"]
        said = subprocess.run(words + flags, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if said.returncode not in (0, 1, 4):
            sys.exit("compare.py: exit %d of %s\n%s" % (said.returncode, " ".join(words + flags), said.stdout[-800:]))
        best = None
        for line in said.stdout.splitlines():
            event = json.loads(line)
            time_us = (event.get("measurement") or {}).get("time_us")
            if event.get("event") == "attempt" and event["judgement"]["verdict"] == "pass" and time_us:
                best = min(best or time_us, time_us)
        with open(work + "/draws") as f:
            return best, len(f.read())


def read(path):
    try:
        with open(path) as f:
            return {(r["task"], r["seed"], r["name"]): r for r in map(json.loads, f)}
    except FileNotFoundError:
        return {}


def measure(program, path, seeds, calls, minutes):
    begun, known = time.monotonic(), read(path)
    with open(path, "a") as f:
        for seed in range(1, seeds + 1):
            if time.monotonic() - begun > 60 * minutes:
                break
            for task in TASKS:
                for name, flags in RUNS.items():
                    if (task, seed, name) in known:
                        continue
                    best, made = run(program, task, flags, seed, calls)
                    f.write(json.dumps({"task": task, "seed": seed, "name": name, "time_us": best, "calls": made, "budget": calls}) + "\n")
                    f.flush()


def interval(logs):
    """The mean of these and where 95 % of the means of resamples lie."""
    dice = random.Random(1)
    means = sorted(sum(dice.choices(logs, k=len(logs))) / len(logs) for _ in range(4000))
    return sum(logs) / len(logs), means[100], means[-101]


def row(name, base, rows, seeds):
    """Runs without a kernel have no time: they are counted and in no mean."""
    cells, logs, better, worse, found = [], [], 0, 0, 0
    for task in TASKS:
        times = [rows[task, s, name]["time_us"] for s in seeds]
        good = [math.log(t) for t in times if t]
        found += len(good)
        cells.append("%.3f us" % math.exp(sum(good) / len(good)) if good else "-")
        for s, t in zip(seeds, times):
            other = rows[task, s, base]["time_us"]
            if t and other:
                logs.append(math.log(t / other))
                better += t < other * 0.999
                worse += t > other * 1.001
    mean, low, high = (math.exp(v) for v in interval(logs))
    ratio = "1" if name == base else "%.3f (%.3f to %.3f)" % (mean, low, high)
    calls = sum(rows[t, s, name]["calls"] for t in TASKS for s in seeds) / len(TASKS) / len(seeds)
    split = "" if name == base else "%d, %d, %d" % (better, len(logs) - better - worse, worse)
    return "| %s | %d of %d | %s | %s | %s | %.1f |" % (name, found, len(TASKS) * len(seeds), " | ".join(cells), ratio, split, calls)


def tables(path):
    rows = read(path)
    seeds = [s for s in sorted({k[1] for k in rows}) if all((t, s, n) in rows for t in TASKS for n in RUNS)]
    if not seeds:
        sys.exit("compare.py: no seed is complete in %s" % path)
    print("%d seeds, %d calls each, times modelled for an H200" % (len(seeds), next(iter(rows.values()))["budget"]))
    for title, names in (("policy", POLICIES), ("profile shown", SCHEDULES)):
        print("\n| %s | with a kernel | %s | time / refine's | better, same, worse | calls |\n|---|---|%s---|---|---|"
              % (title, " | ".join(TASKS), "---|" * len(TASKS)))
        for name in names:
            line = row(name, names[0], rows, seeds)
            print(line.replace("| refine |", "| never |") if title != "policy" else line)


if __name__ == "__main__":
    if sys.argv[1] == "--tables":
        tables(sys.argv[2])
    else:
        limits = [int(w) for w in sys.argv[3:]] + [10, 16, 25][len(sys.argv) - 3:]
        measure(os.path.abspath(sys.argv[1]), sys.argv[2], *limits)
        tables(sys.argv[2])
