"""Where the wall time of many tasks goes: `cutegen run` of each, several at a time, told by its own messages. Needs a GPU.

    python3 bench/gpu/suite_time.py CUTEGEN OUT JOBS SECONDS TASK.py... [-- FLAG...]

Every process is run with -vv; its lines get the time at which they came. OUT/NAME.log has them, OUT/turns.txt what is printed:
a line per task, seconds by kind of request, how long the GPU was held by a task and how long waited for, and the share of
samples in which nvidia-smi says that it was busy. JOBS 1,6: one turn after the other, each in OUT/jobs-N with a store of its own
and SECONDS of its own; then whether the verdicts are the same, and seconds and busy share beside each other.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time

START = time.monotonic()
ASKED = re.compile(r"debug: process \d+ took (\d+) ms for (.*)")
SUMS: dict[str, list[float]] = collections.defaultdict(list)
LOCK = threading.Lock()


def kind(request):
    try:
        what = re.search(r'"do":\s*"(\w+)"', request)
        if not what:
            return "builder compile"
        name = what.group(1)
        which = re.search(r'"name":\s*"(\w+)"', request) if name == "baseline" else None
        return f"{name} {which.group(1)}" if which else ("runner " if '"module"' in request or name in ("bind", "run", "time") else "") + name
    except AttributeError:
        return "?"


def account(lines, row):
    """Adds what the stamped lines of one process say."""
    held = asked = None
    for at, line in lines:
        found = ASKED.search(line)
        if found:
            row[kind(found.group(2))] += int(found.group(1)) / 1000
        elif "waiting for the GPU" in line:
            asked = at
        elif "the GPU is ours" in line or "the GPU is shared" in line:
            row["GPU waited for"] += at - asked if asked else 0
            asked, held = None, (at, "GPU held" if "ours" in line else "GPU shared")
        elif "the GPU is given back" in line and held:
            row[held[1]] += at - held[0]
            held = None


def one(cutegen, out, task, flags, end):
    name, begin, lines = pathlib.Path(task).stem, time.monotonic(), []
    if begin > end:
        return f"{name:16} not run", "not run"
    words = [cutegen, "run", task, "--no-report", "--json", "-vv", *flags]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, "CUTEGEN_COLOR": "never"})
    timer = threading.Timer(max(1, end + 20 - begin), child.terminate)
    timer.start()
    for line in child.stdout:
        lines.append((time.monotonic(), line.rstrip()))
    timer.cancel()
    code = child.wait()
    pathlib.Path(out, f"{name}.log").write_text("".join(f"{at - START:9.3f} {line[:400]}\n" for at, line in lines))
    row = collections.defaultdict(float)
    account(lines, row)
    row["wall"] = time.monotonic() - begin
    with LOCK:
        for key, value in row.items():
            SUMS[key].append(value)
    verdicts = [json.loads(line).get("judgement", {}).get("verdict") for _, line in lines if line.startswith('{"') and '"attempt"' in line[:200]]
    most = sorted(((v, k) for k, v in row.items() if k not in ("wall", "GPU held", "GPU shared", "GPU waited for")), reverse=True)[:5]
    return (f"{name:16} {row['wall']:6.1f} s  code {code}  {verdicts[-1:]}  held {row['GPU held']:5.1f}  waited {row['GPU waited for']:5.1f}  "
            + ", ".join(f"{k} {v:.1f}" for v, k in most)), verdicts[-1] if verdicts and code == 0 else f"exit status {code}"


def watch(busy, going):
    """nvidia-smi's own share of the last moment, five times a second."""
    try:
        smi = subprocess.Popen(["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "200"],
                               stdout=subprocess.PIPE, text=True)
    except OSError:
        return
    for line in smi.stdout:
        if not going[0]:
            break
        busy.append(int(line.strip() or 0) if line.strip().isdigit() else 0)
    smi.kill()


def turn(cutegen, out, jobs, seconds, tasks, flags):
    """All tasks once: {task: verdict}, seconds, and the busy share or None."""
    out.mkdir(parents=True, exist_ok=True)
    SUMS.clear()
    busy, going, end = [], [True], time.monotonic() + seconds
    threading.Thread(target=watch, args=(busy, going), daemon=True).start()
    begin, found, said = time.monotonic(), {}, open(out / "turns.txt", "w", encoding="utf-8")

    def say(text):
        print(text, flush=True)
        print(text, file=said, flush=True)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for task, (text, verdict) in zip(tasks, pool.map(lambda task: one(cutegen, out, task, flags, end), tasks)):
            found[pathlib.Path(task).stem] = verdict
            say(text)
    took = time.monotonic() - begin
    going[0] = False
    good = max(1, sum(v == "pass" for v in found.values()))
    say(f"{sum(v == 'pass' for v in found.values())} of {len(tasks)} tasks pass with {jobs} at a time in {took:.1f} s; {took / good:.2f} s each")
    share = 100 * sum(b > 0 for b in busy) / len(busy) if busy else None
    if busy:
        say(f"GPU: in {share:.0f} % of {len(busy)} samples busy, {sum(busy) / len(busy):.0f} % on average")
    for key, values in sorted(SUMS.items(), key=lambda item: -sum(item[1])):
        say(f"    {key:28} {sum(values):7.1f} s, {sum(values) / good:6.2f} a task")
    return found, took, share


def compare(turns):
    """Of {jobs: turn}: a row for each, and the tasks whose verdicts differ."""
    print("| jobs | pass | s | GPU busy |\n|---|---|---|---|")
    for jobs, (found, took, share) in turns.items():
        print(f"| {jobs} | {sum(v == 'pass' for v in found.values())} of {len(found)} | {took:.0f} | {'-' if share is None else f'{share:.0f} %'} |")
    verdicts = {name: [found.get(name) for found, _, _ in turns.values()] for name in next(iter(turns.values()))[0]}
    judged = {name: v for name, v in verdicts.items() if "not run" not in v}
    for name, v in judged.items():
        if len(set(v)) > 1:
            print(f"{name}: {', '.join(v)}")
    same = sum(len(set(v)) == 1 for v in judged.values())
    print(f"the same verdict in every turn: {same} of {len(judged)} tasks; {len(verdicts) - len(judged)} more were not run in all")


def main():
    cutegen, out, jobs, seconds, *tasks = sys.argv[1:]
    flags = tasks[tasks.index("--") + 1:] if "--" in tasks else []
    tasks = tasks[: tasks.index("--")] if "--" in tasks else tasks
    if "," not in jobs:
        turn(cutegen, pathlib.Path(out), int(jobs), float(seconds), tasks, flags)
        return
    turns = {}
    for count in jobs.split(","):
        here = pathlib.Path(out, f"jobs-{count}")
        turns[count] = turn(cutegen, here, int(count), float(seconds), tasks, [*flags, "--runs", str(here / "runs")])
    compare(turns)


if __name__ == "__main__":
    main()
