"""overhead.py CUTEGEN [ROUNDS] - what the orchestrator itself takes per step: all but model, builder and device.

Replays examples/replays/steps/swish.jsonl on simt (the answers cost nothing) and reads the store: from the end of one attempt to
the end of the next, less what building and testing took. That leaves: prompt, reply, edits, store (every row synced to
the disk), events and the modelled time. Of several rounds the quietest counts, step by step: other load only adds.
"""
import os
import sqlite3
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
steps = {}
with tempfile.TemporaryDirectory() as work:
    for i in range(rounds):
        runs = "%s/r%d" % (work, i)
        subprocess.run([program, "run", root + "/examples/swish.py", "--device", "simt", "--model",
                        "replay:%s/examples/replays/steps/swish.jsonl" % root, "--advance", "last", "--no-report", "--runs", runs],
                       check=True, stdout=subprocess.DEVNULL)
        db = sqlite3.connect(runs + "/store.db")
        rows = db.execute("SELECT a.number, a.started_ms, a.ended_ms, b.build_ms, t.test_ms FROM attempts a "
                          "JOIN builds b ON b.run = a.run AND b.attempt = a.number "
                          "JOIN tests t ON t.run = a.run AND t.attempt = a.number ORDER BY a.number").fetchall()
        for before, now in zip(rows, rows[1:]):
            steps.setdefault(now[0], []).append(now[2] - before[2] - now[3] - now[4])
best = [min(v) for _, v in sorted(steps.items())]
print("overhead per step, quietest of %d rounds: %s ms" % (rounds, best))
print("mean %.1f ms, largest %d ms (limit 50 ms)" % (sum(best) / len(best), max(best)))
sys.exit(max(best) > 50)
