"""search_test.py CUTEGEN - the search policies, their resume, the stop near the floor and the memory between tasks.

The model is bench/loop/stochastic.py: it draws steps and faults from a seed, the n-th answer of a run is always the same. Prints TAP.
"""
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-search-")
swish = os.path.join(root, "examples/swish.py")
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
# with the suite's warm server, or its own
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_DRAWS="1", CUTEGEN_SERVER="yes",
           CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", work + "/rt"))
done, failed = 0, 0


def ok(sentence, good, why=""):
    global done, failed
    done += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", done, sentence))
    if not good:
        print("#", str(why)[-1500:].replace("\n", "\n# "))


def cutegen(*words):
    p = subprocess.run([program, *words], env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return p.returncode, p.stdout


def run(name, *flags, seed=1, depth=2):
    model = "exec:python3 %s/bench/loop/stochastic.py %d %s/%s.draws" % (root, seed, work, name)
    return cutegen("run", swish, "--model", model, "--runs", os.path.join(work, name), "--no-report", "--depth", str(depth), "--floor-stop",
                   "0", *flags)


def rows(name, sql):
    db = sqlite3.connect("file:%s/%s/store.db?mode=ro" % (work, name), uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


ATTEMPTS = ("SELECT a.number, a.stage, a.repair, c.depth, c.change, c.source, v.kind FROM attempts a JOIN candidates c ON "
            "c.id = a.candidate JOIN verdicts v ON v.run = a.run AND v.attempt = a.number ORDER BY a.number")
LINES = {"refine": [], "beam": ["--search", "beam", "--beam", "2"], "restarts": ["--search", "restarts", "--restarts", "3"]}
for policy, flags in LINES.items():
    depth = 3 if policy == "restarts" else 2
    code, out = run(policy, *flags, depth=depth)
    ok("%s finds a kernel" % policy, code == 0, out)
    code, out = run(policy + "-cut", *flags, "--budget-calls", "3", depth=depth)
    ok("%s is stopped by its budget of calls" % policy, code == 4, out)
    code, out = cutegen("resume", "last", "--runs", os.path.join(work, policy + "-cut"), "--no-report", "--budget-calls", "99")
    ok("resumed, %s makes the same attempts as without the stop" % policy,
       code == 0 and rows(policy, ATTEMPTS) == rows(policy + "-cut", ATTEMPTS), out)
MADE = ATTEMPTS.replace("a.number, ", "a.number, a.started_ms, ")
before = rows("restarts", MADE)
code, out = cutegen("resume", "last", "--runs", os.path.join(work, "restarts"), "--no-report", "--depth", "5")
after = rows("restarts", MADE)
ok("a finished run with restarts is taken further, and what was made stays", code == 0 and "depth 5 reached" in out and
   after[:len(before)] == before and max(r[4] for r in after) == 5, out)
code, out = cutegen("resume", "last", "--runs", os.path.join(work, "restarts"), "--no-report", "--depth", "2")
ok("resume does not take it back", code == 0 and "--depth 2 is ignored" in out and "has reached depth 5" in out and
   rows("restarts", MADE) == after, out)
first = rows("beam", "SELECT count(*) FROM calls WHERE stage = 'synthesize'")[0][0]
ok("beam begins with two first kernels", first >= 2, first)
new = rows("restarts", "SELECT DISTINCT c.depth FROM attempts a JOIN candidates c ON c.id = a.candidate WHERE a.stage = 'synthesize'")
ok("restarts begin anew at later depths", len(new) >= 2, new)

code, out = run("together", "--search", "beam", "--parallel-calls", "3", seed=2)
slots = rows("together", "SELECT DISTINCT slot FROM calls ORDER BY slot")
ok("with --parallel-calls the candidates of a step are asked for together", code == 0 and [s[0] for s in slots[:3]] == [0, 1, 2],
   "%s %s" % (slots, out))

code, out = run("floor", "--floor-stop", "10000")
ok("a run stops near the floor and says so", code == 0 and "of the floor" in out and "no kernel can take less" in out, out)
ok("after one kernel", all(r[3] == 0 for r in rows("floor", ATTEMPTS)), rows("floor", ATTEMPTS))

# What other runs learnt: only of judged attempts, only of the class and device; three prompts with and without.
TITLE = "# What other runs learnt"
kernel = os.path.join(work, "k.cu")
with open(kernel, "w") as f:
    f.write(cutegen("show", "last", "--source", "--runs", os.path.join(work, "refine"))[1])
here = ["--runs", os.path.join(work, "refine")]
PROMPTS = [("a first kernel", ["prompt", swish]), ("a step", ["prompt", swish, "--stage", "optimize", "--kernel", kernel]),
           ("another task of the class", ["prompt", os.path.join(root, "examples/hard_sigmoid.py")])]
for name, words in PROMPTS:
    with_it, without = cutegen(*words, *here), cutegen(*words, *here, "--no-memory")
    text = with_it[1].partition(TITLE)[2][:1200]
    ok("the prompt for %s tells what other runs learnt, with figures" % name,
       with_it[0] == 0 and "modelled" in text and "% of its floor" in text, with_it[1][-600:])
    ok("and does not with --no-memory", without[0] == 0 and TITLE not in without[1])
told = cutegen("prompt", os.path.join(root, "examples/hard_sigmoid.py"), *here)[1].partition(TITLE)[2].partition("# What to do")[0]
ok("a repaired step is told by its change", "): repair" not in told and ("): threads" in told or "): vec" in told or "): per" in told or
   "): a larger" in told), told)
code, out = cutegen("prompt", os.path.join(root, "examples/softmax.py"), *here)
ok("nothing is told of another class", code == 0 and TITLE not in out, out[-300:])
code, out = run("refine", "--depth", "1")
memory = rows("refine", "SELECT data FROM events WHERE kind = 'memory'")
ok("a run keeps what it was told", code == 0 and len(memory) == 1 and "of its floor" in json.loads(memory[0][0])["text"], memory)
sent = rows("refine", "SELECT count(*) FROM messages m JOIN blobs b ON b.sha256 = m.content WHERE instr(b.data, '%s') > 0" % TITLE)
ok("and tells it to the model", sent[0][0] > 0, sent)
env["CUTEGEN_RUNTIME"] = work + "/rt"
cutegen("server", "stop")
shutil.rmtree(work, ignore_errors=True)
print("1..%d" % done)
sys.exit(bool(failed))
