"""kill_test.py CUTEGEN [TIMES] - kill -9 at random moments of a replayed run, then resume: nothing is lost.

For every kill: the final kernel is that of an undisturbed run, every call that was in the store is still there and was not made
again, every attempt that had ended is still the same one, and there are as many of both as in an undisturbed run. Prints TAP.
"""
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

program = os.path.abspath(sys.argv[1])
times = int(sys.argv[2]) if len(sys.argv) > 2 else 5
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-kill-")
random.seed(int(os.environ.get("SEED", "7")))
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_DRAWS="1")
RUN = [os.path.join(root, "examples/swish.py"), "--model", "replay:" + os.path.join(root, "examples/replays/swish-repaired.jsonl"),
       "--depth", "2", "--no-report"]
# What is killed has processes of its own; all else goes through a warm server.
warm = {**env, "CUTEGEN_SERVER": "yes", "CUTEGEN_RUNTIME": work + "/rt"}


def cutegen(runs, *words):
    return subprocess.run([program, *words, "--runs", runs], env=warm, cwd=work, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def look(runs):
    """What the store holds: calls and ended attempts in order, and the state of the runs."""
    db = sqlite3.connect("file:%s/store.db?mode=ro" % runs, uri=True)
    try:
        calls = db.execute("SELECT id, stage, attempt, at_ms, reply FROM calls ORDER BY id").fetchall()
        ended = db.execute("SELECT a.number, a.stage, a.started_ms, a.ended_ms, v.kind, c.source FROM attempts a "
                           "JOIN verdicts v ON v.run = a.run AND v.attempt = a.number JOIN candidates c ON c.id = a.candidate "
                           "WHERE a.ended_ms IS NOT NULL ORDER BY a.number").fetchall()
        states = db.execute("SELECT id, state FROM runs").fetchall()
    except sqlite3.OperationalError:  # killed before the tables were there
        calls, ended, states = [], [], []
    db.close()
    return calls, ended, states


def kernel(runs):
    return hashlib.sha256(cutegen(runs, "show", "last", "--source").stdout.encode()).hexdigest()


first = os.path.join(work, "undisturbed")
begin = time.time()
said = cutegen(first, "run", *RUN)
if said.returncode:
    print("Bail out! the undisturbed run failed:", said.stdout[-2000:])
    sys.exit(1)


def start(runs):
    """Starts a run and waits until it has begun: its folder is there. Returns the process and that moment."""
    p = subprocess.Popen([program, "run", *RUN, "--runs", runs], env=env, cwd=work, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    while p.poll() is None and not (os.path.isdir(runs) and any("swish" in f for f in os.listdir(runs))):
        time.sleep(0.005)
    return p, time.time()


p, begin = start(os.path.join(work, "cached"))  # with its builds in the cache, as those to be killed
p.wait()
lengths = [time.time() - begin]
want = kernel(first)
all_calls, all_attempts, _ = look(first)
early = middle = 0
bad = []
i = 0
end = time.time() + float(os.environ.get("SECONDS_AT_MOST", "1e9"))
while i < times and time.time() < end:
    runs = os.path.join(work, "r%d" % i)
    # Some before the run has begun, most between its beginning and its end.
    if i % 10 == 0:
        after = random.uniform(0, 2)
        p = subprocess.Popen([program, "run", *RUN, "--runs", runs], env=env, cwd=work, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        begin = time.time()
    else:
        after = random.uniform(0, sorted(lengths)[len(lengths) // 2])
        p, begin = start(runs)
    try:
        p.wait(timeout=max(0, begin + after - time.time()))
        lengths.append(time.time() - begin)  # it was faster this time: no kill, no count
        shutil.rmtree(runs, ignore_errors=True)
        continue
    except subprocess.TimeoutExpired:
        pass
    p.send_signal(signal.SIGKILL)
    p.wait()
    i += 1
    calls, ended, states = look(runs) if os.path.exists(runs + "/store.db") else ([], [], [])
    if not states:
        early += 1
        said = cutegen(runs, "run", *RUN)
    else:
        said = cutegen(runs, "resume", "last", "--no-report")
    middle += bool(calls) and len(calls) < len(all_calls)
    now_calls, now_ended, now_states = look(runs)
    problems = []
    if said.returncode:
        problems.append("exit %d: %s" % (said.returncode, said.stdout[-300:]))
    if now_calls[:len(calls)] != calls:
        problems.append("calls that were answered are not the same any more")
    if now_ended[:len(ended)] != ended:
        problems.append("attempts that had ended are not the same any more")
    if [c[1:3] + c[4:] for c in now_calls] != [c[1:3] + c[4:] for c in all_calls]:
        problems.append("%d calls instead of %d, or others" % (len(now_calls), len(all_calls)))
    if [a[:2] + a[4:] for a in now_ended] != [a[:2] + a[4:] for a in all_attempts]:
        problems.append("%d attempts instead of %d, or others" % (len(now_ended), len(all_attempts)))
    if kernel(runs) != want:
        problems.append("another kernel")
    if len(now_states) != 1 or now_states[0][1] != "done":
        problems.append("runs: %s" % now_states)
    if problems:
        bad.append("after %.2f s: %s" % (after, "; ".join(problems)))
    shutil.rmtree(runs, ignore_errors=True)
subprocess.run([program, "server", "stop"], env=warm, capture_output=True, check=False)
shutil.rmtree(work, ignore_errors=True)
print("%s 1 - killed at %d random moments (%d before the run had begun, %d with some of its calls answered and others not), each "
      "went on to the same kernel with %d calls and %d attempts" % ("not ok" if bad else "ok", i, early, middle, len(all_calls),
                                                                    len(all_attempts)))
for b in bad:
    print("#", b)
print("1..1")
sys.exit(bool(bad))
