# SPDX-License-Identifier: Apache-2.0
"""A queue that somebody hostile may write, and roles that keep them from it. Started by postgres.sh:

    tests/store/postgres.sh python3 tests/e2e/queue_test.py CUTEGEN

Rows are put in by SQL. A worker must take from them nothing that it would not take from a file, and say why.
"""

from __future__ import annotations

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
HOME = Path(__file__).resolve().parents[2]
URL = os.environ["CUTEGEN_TEST_STORE"]
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

TASK = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(16, 64)]

def get_init_inputs():
    return []
"""
done = 0
failed = 0


def ok(what: str, good: bool, more: str = "") -> None:
    global done, failed
    done += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {done} - {what}", flush=True)
    if not good and more:
        print("\n".join("# " + line for line in more.splitlines()[-40:]), flush=True)


def psql(text: str, user: str = "cutegen") -> subprocess.CompletedProcess[str]:
    url = URL.replace("user=cutegen", f"user={user}")
    return subprocess.run(["psql", "-v", "ON_ERROR_STOP=1", "-d", url, "-At", "-c", text], capture_output=True, text=True)


def cutegen(*words: str, user: str = "cutegen") -> subprocess.CompletedProcess[str]:
    url = URL.replace("user=cutegen", f"user={user}")
    return subprocess.run([PROGRAM, *words, "--store", url], capture_output=True, text=True)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def run_sql(text: str) -> None:
    p = subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", URL], input=text, capture_output=True, text=True)
    if p.returncode:
        sys.exit(p.stderr)


def put_job(name: str, flags: str, path: str, run: str = "") -> None:
    text = f"""INSERT INTO suites (name, source, flags, started_ms) VALUES ({quoted(name)}, '/x', {quoted(flags)}, 1);
        INSERT INTO suite_tasks (suite, number, path) VALUES ({quoted(name)}, 0, {quoted(path)});
        INSERT INTO jobs (suite, number, path, state, priority, needs_kind, needs_gpu, needs_bytes, added_ms)
        VALUES ({quoted(name)}, 0, {quoted(path)}, 'waiting', 0, '', '', 0, 1);"""
    if run:
        text += f"""INSERT INTO blobs (sha256, size, data) VALUES ('{EMPTY}', 0, '') ON CONFLICT DO NOTHING;
            INSERT INTO tasks (name, path, source, description, class, evidence)
            VALUES ('x', {quoted(path)}, '{EMPTY}', '{EMPTY}', 'pointwise', '');
            INSERT INTO runs (id, task, model, suite, device, options, environment, state, reason, started_ms)
            SELECT {quoted(run)}, max(id), 'builtin', {quoted(name)}, '{{}}', '{{}}', '{{}}', 'stopped', '', 1 FROM tasks;"""
    run_sql(text)


def hostile(top: Path) -> None:
    trap = top / "trap"
    good = str(top / "tasks" / "there-is-none.py")
    cases = {
        "a model that is a command": (f'["--model=exec:touch {trap}"]', good),
        "a program": (f'["--python={trap}"]', good),
        "a file to write": (f'["--record={trap}"]', good),
        "an address that gets the key": ('["--base-url=http://evil.example"]', good),
        "trust": ('["--trust"]', good),
        "two words in one": (f'["--depth=1\\n--record={trap}"]', good),
        "a flag that is none": ('["-h"]', good),
        "numbers for flags": ("[1, null, {}]", good),
        "a flag of a megabyte": (json.dumps(["--depth=" + "1" * 1000000]), good),
        "ten thousand flags": (json.dumps(["--depth=1"] * 10000), good),
        "a flag for a path": ("[]", f"--record={trap}"),
        "a relative path": ("[]", "../../etc/x.py"),
        "a path with a newline": ("[]", "/tmp/a\nb.py"),
        "a path of a megabyte": ("[]", "/" + "a" * 1000000 + ".py"),
        "a file that is no task": ("[]", "/etc/passwd"),
        "another folder than the worker's": ("[]", str(top / "others" / "secret.py")),
        "a link out of the worker's folder": ("[]", str(top / "tasks" / "link.py")),
    }
    nobodys = ("a flag for a path", "a relative path")  # a folder's paths begin with a /
    others = ("a path with a newline", "a path of a megabyte", "a file that is no task", "another folder than the worker's", *nobodys)
    (top / "tasks").mkdir()
    (top / "others").mkdir()
    (top / "others" / "secret.py").write_text(TASK)
    (top / "tasks" / "link.py").symlink_to(top / "others" / "secret.py")
    for i, (flags, path) in enumerate(cases.values()):
        put_job(f"hostile-{i}", flags, path)
    put_job(f"../{trap.name}", "[]", good)
    put_job("--json", "[]", good)
    put_job("hostile-run", "[]", good, f"--record={trap}")
    p = cutegen("worker", "--idle-exit", "0", "--tasks", str(top / "tasks"))
    ok("a worker ends when it has refused all of them", p.returncode == 0, p.stdout + p.stderr)
    ok("it says whose tasks it takes, and that others wait", f"takes tasks in {top}/tasks" in p.stdout and
       "tasks of other folders are waiting" in p.stdout, p.stdout)
    left = psql("SELECT suite FROM jobs WHERE state = 'waiting' AND tries = 0 ORDER BY id").stdout.split()
    ok("what lies in other folders waits for other workers", left == [f"hostile-{i}" for i, w in enumerate(cases) if w in others], str(left))
    secret = "hostile-%d" % list(cases).index("another folder than the worker's")
    psql(f"DELETE FROM jobs WHERE suite = '{secret}'")
    cutegen("worker", "--idle-exit", "0", "--tasks", "/")
    rows = dict(r.split("|", 1) for r in psql("SELECT suite, problem FROM jobs WHERE state = 'done'").stdout.splitlines())
    for i, what in enumerate(cases):
        if what in nobodys or f"hostile-{i}" == secret:
            continue
        problem = rows.get(f"hostile-{i}", "")
        refused = problem.startswith("a worker does not accept")
        ok(f"refused: {what}", refused and len(problem) < 300, problem[:300])
    names = [rows.get(n, "") for n in ("../trap", "--json", "hostile-run")]
    ok("refused: names that are paths or flags", all(n.startswith("a worker does not accept") for n in names), str(rows))
    ok("nothing was run, nothing written", not trap.exists() and not (top / "runs" / ".." / "trap").exists())
    left = psql("SELECT count(*) FROM jobs WHERE state <> 'done' AND tries > 0").stdout.strip()
    stored = psql("SELECT count(*) FROM blobs WHERE size > 0").stdout.strip()
    ok("no job is left, and no file of others is in the store", (left, stored) == ("0", "0"), f"{left} {stored}")
    psql("UPDATE workers SET host = E'\\x1b[2Jnode', seen_ms = 9e15")
    out = cutegen("top").stdout
    ok("`top` prints no control characters", "\x1b" not in out and "node" in out, repr(out))


def hostile_singles(top: Path) -> None:
    """Jobs by themselves, of every kind, whose payload nobody of ours wrote."""
    task = str(top / "tasks" / "there-is-none.py")
    cases = {
        "a payload that is none": ("eval", task, "[]", "]"),
        "a list for a payload": ("measure", task, "[]", "[]"),
        "a payload of a megabyte": ("eval", task, "[]", json.dumps({"name": "x" * 1000000})),
        "a run that is a flag": ("measure", task, "[]", '{"run": "--record=/x"}'),
        "a run that is a path": ("profile", task, "[]", '{"run": "../../etc"}'),
        "an export without a run": ("export", task, "[]", "{}"),
        "a flag that is a program": ("run", task, '["--python=/bin/sh"]', "{}"),
        "flags that are none": ("run", task, '{"--depth": 1}', "{}"),
        "a path out of the folder": ("run", str(top / "tasks" / "link.py"), "[]", "{}"),
    }
    for i, (kind, path, flags, payload) in enumerate(cases.values()):
        run_sql(f"""INSERT INTO jobs (kind, hash, path, flags, payload, state, priority, needs_kind, needs_gpu, needs_bytes, added_ms)
            VALUES ('{kind}', 'h{i}', {quoted(path)}, {quoted(flags)}, {quoted(payload)}, 'waiting', 0, '', '', 0, 1);""")
    cutegen("worker", "--idle-exit", "0", "--tasks", str(top / "tasks"))
    rows = dict(r.split("|", 1) for r in psql("SELECT hash, problem FROM jobs WHERE hash IS NOT NULL AND state = 'done'").stdout.splitlines())
    for i, what in enumerate(cases):
        ok(f"refused: {what}", rows.get(f"h{i}", "").startswith("a worker does not accept"), rows.get(f"h{i}", ""))
    psql("DELETE FROM jobs WHERE hash IS NOT NULL")


def kinds(top: Path) -> None:
    """Each kind of job, put there by a command and done by two workers: one compiles, with a cache of its own, one judges."""
    task, kernel = top / "kinds" / "swish.py", HOME / "examples/kernels/swish.cu"
    task.parent.mkdir()
    task.write_text((HOME / "examples/swish.py").read_text())
    bad = top / "bad.cu"
    bad.write_text(kernel.read_text().replace("int64_t const i =", "no_such_type const i ="))
    words = ["--draws", "1"]

    def worker(take: str, *more: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "XDG_CACHE_HOME": str(top / f"cache-{take}"), "CUTEGEN_STORE": URL}
        return subprocess.Popen([PROGRAM, "worker", "--take", take, "--tasks", str(task.parent), *more], env=env, stdout=subprocess.DEVNULL)

    def add(*what: str) -> list[dict]:
        p = cutegen("queue", "add", *what, "--json", *words)
        return [json.loads(line) for line in p.stdout.splitlines()] if p.returncode == 0 else [{"error": p.stderr}]

    builder = worker("compile")
    for _ in range(6000):
        if psql("SELECT count(*) FROM workers WHERE takes = 2").stdout.strip() == "1" or builder.poll() is not None:
            break
        time.sleep(0.1)
    first = add("eval", str(task), str(kernel), str(bad))
    again = add("eval", str(task), str(kernel))
    ok("a candidate that is asked for twice is one job", len(first) == 2 and again[0].get("job") == first[0].get("job"), f"{first} {again}")
    judge = worker("judge", "--compile-on", "queue")

    def wait(jobs: list[dict], *more: str) -> list[dict]:
        p = cutegen("queue", "wait", *[str(j["job"]) for j in jobs], "--json", *more)
        return [json.loads(line) for line in p.stdout.splitlines() if line.startswith("{")]

    done = wait(first)
    ok("one passes, the other does not compile", [j["result"].get("verdict") for j in done] == ["pass", "compile error"], str(done)[:600])
    ok("results say how fast, and where", done[0]["result"]["time_us"] > 0 and done[0]["result"]["machine"]["host"] != "", str(done[0]))
    rows = psql("SELECT result, w.takes, count(*) FROM jobs j JOIN workers w ON w.id = j.worker WHERE j.kind = 'compile' GROUP BY 1, 2").stdout.split()
    ok("what was judged was compiled by the worker that compiles", rows == ['{"made":', 'true}|2|2'], str(rows))
    run = done[0]["run"]
    built = psql(f"SELECT cached FROM builds WHERE run = '{run}'").stdout.strip()
    ok("and by nobody else", built == "1", built)
    more = wait([add(kind, run)[0] for kind in ("measure", "profile", "export")])
    ok("measure, profile, export: judged once more, a run each", [j["result"].get("verdict") for j in more] == ["pass"] * 3 and
       len({j["run"] for j in more} | {run}) == 4, str(more)[:600])
    ok("a profile comes with its job", "profile" in more[1]["result"] and "profile" not in more[0]["result"])
    wait(more[2:], "--output", str(top / "exported"))
    ok("an export is written where it is wanted", (top / "exported" / "record.json").is_file() or
       bool(list((top / "exported").rglob("record.json"))), str(list((top / "exported").glob("*")) if (top / "exported").is_dir() else "none"))
    task.write_text(task.read_text() + "\n# changed\n")
    put = add("run", str(task), "--depth", "0")
    ran = wait(put)
    ok("a task is run, and its best kernel is the result", ran[0]["result"].get("verdict") == "pass" and ran[0]["problem"] == "", str(ran)[:600])
    psql(f"UPDATE jobs SET state = 'waiting', tries = 1, result = '' WHERE id = {put[0]['job']}")
    ok("a job whose end was not said is not done again", wait(put)[0]["run"] == ran[0]["run"])
    late = add("eval", str(task), str(kernel), "--draws", "2", "--priority", "-5")
    for w in (judge, builder):
        w.terminate()
    for w in (judge, builder):
        w.wait()
    gone = cutegen("queue", "cancel", str(late[0]["job"]), "--json")
    state = json.loads(gone.stdout or "{}").get("state")
    ok("a job that waits is cancelled", state in ("failed", "done"), gone.stdout + gone.stderr)
    owner = psql("SELECT DISTINCT owner FROM jobs WHERE hash IS NOT NULL AND kind <> 'compile'").stdout.split()
    ok("jobs have an owner", owner == ["cutegen"], str(owner))
    psql("DELETE FROM jobs WHERE state = 'waiting'")


def roles(top: Path) -> None:
    script = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", URL, "-f", str(HOME / "setup/roles.sql")]
    p, again = (subprocess.run(script, capture_output=True, text=True) for _ in range(2))
    ok("roles.sql runs, also twice", p.returncode == 0 and again.returncode == 0, p.stderr)
    for who in ("reader", "worker", "owner"):
        psql(f"CREATE ROLE a_{who} LOGIN; GRANT cutegen_{who} TO a_{who}")
    task = top / "tasks" / "relu.py"
    task.write_text(TASK)
    p = cutegen("run", str(task), "--depth", "0", "--no-report", user="a_worker")
    ok("a worker may drive a run", p.returncode == 0, p.stdout + p.stderr)
    runs = json.loads(cutegen("runs", "--json", user="a_reader").stdout or "{}").get("runs", [{}])
    ok("a reader sees it, and whose it is", runs[0].get("owner") == "a_worker", str(runs)[:300])
    p = cutegen("run", str(task), "--depth", "0", "--no-report", user="a_reader")
    ok("a reader may not write, and is told what to ask for", p.returncode == 3 and "cutegen_worker" in p.stderr, p.stderr)
    denied = {
        "reader": ["DELETE FROM runs", "UPDATE jobs SET state = 'done'", "CREATE TABLE x (i INTEGER)"],
        "worker": ["DELETE FROM blobs", "UPDATE suites SET flags = '[]'", "UPDATE suite_tasks SET path = '/x'",
                   "INSERT INTO suites (name, source, flags, started_ms) VALUES ('x', '', '[]', 1)",
                   "INSERT INTO jobs (suite, number, state, priority, needs_kind, needs_gpu, needs_bytes, added_ms) "
                   "VALUES ('x', 0, 'waiting', 0, '', '', 0, 1)", "UPDATE jobs SET payload = '{}'", "DROP TABLE runs", "CREATE TABLE x (i INTEGER)"],
        "owner": ["DROP TABLE runs", "UPDATE cutegen_store SET version = 1"],
    }
    for who, statements in denied.items():
        let = [s for s in statements if "permission denied" not in (e := psql(s, f"a_{who}").stderr) and "must be owner" not in e
               and "row-level security" not in e]
        ok(f"what is denied to a role: {who}", not let, str(let))
    p = psql("INSERT INTO jobs (kind, hash, state, priority, needs_kind, needs_gpu, needs_bytes, added_ms) "
             "VALUES ('compile', 'x', 'done', 0, '', '', 0, 1)", "a_worker")
    ok("a worker may ask for what it judges to be compiled", p.returncode == 0, p.stderr)
    p = cutegen("queue", "add", "run", str(task), user="a_worker")
    q = cutegen("queue", "add", "run", str(task), user="a_owner")
    ok("a worker may put no other job there, an owner may", (p.returncode, q.returncode) == (3, 0), p.stderr + q.stderr)
    psql("DELETE FROM jobs WHERE hash IS NOT NULL")
    p = cutegen("store", "prune", "--older-than", "0", user="a_worker")
    ok("a worker may not prune", p.returncode == 3, p.stdout + p.stderr)
    p = cutegen("store", "prune", "--older-than", "0", user="a_owner")
    ok("an owner may", p.returncode == 0 and "pruned" in p.stdout, p.stdout + p.stderr)
    p = cutegen("store", "check", user="a_reader")
    ok("the store is whole after it", "0 faults" in p.stdout, p.stdout + p.stderr)


def drained(top: Path) -> None:
    """Asked to end while a model is asked, a worker waits for the reply: it is paid for."""
    script = top / "model.sh"
    script.write_text(
        f"#!/bin/sh\ncat >/dev/null\necho x >>{top}/asked\n"
        f"until [ -e {top}/go ]; do sleep 0.1; done\necho 'I do not know.'\n"
    )
    script.chmod(0o755)
    put_job("drained", '["--depth=0"]', str(top / "tasks" / "relu.py"))
    env = {**os.environ, "CUTEGEN_MODEL": f"exec:{script}", "CUTEGEN_STORE": URL}
    worker = subprocess.Popen([PROGRAM, "worker", "--suite", "drained", "--tasks", str(top / "tasks")], env=env, stdout=subprocess.DEVNULL)
    for _ in range(6000):
        if (top / "asked").exists() or worker.poll() is not None:
            break
        time.sleep(0.1)
    worker.terminate()
    (top / "go").touch()
    worker.wait()
    job = psql("SELECT state, tries FROM jobs WHERE suite = 'drained'").stdout.strip()
    ok("its task is given back, and the try does not count", job == "waiting|0", job)
    calls = psql("SELECT finish_reason FROM calls c JOIN runs r ON r.id = c.run WHERE r.suite = 'drained'").stdout.split("\n")
    asked = (top / "asked").read_text().count("x")
    kept = [c for c in calls if c and c not in ("killed", "in flight")]
    ok("every reply that was asked for is in the store", len(kept) == asked == 1, f"{calls} {asked}")


class Seller(http.server.BaseHTTPRequestHandler):
    """A model that is paid for each request; `asked` has their prompts. The last piece of a reply waits for `before_last`."""

    protocol_version = "HTTP/1.1"
    asked: list[str] = []
    reply = ""

    def log_message(self, *args: object) -> None:
        pass

    @staticmethod
    def before_last() -> None:
        pass

    def piece(self, text: str) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text.encode()), text.encode()))
        self.wfile.flush()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(str(json.loads(body)["messages"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for choice in ({"delta": {"content": self.reply}}, {"delta": {}, "finish_reason": "stop"}):
            self.piece("data: " + json.dumps({"id": "x", "model": "scripted-1", "choices": [{"index": 0, **choice}]}) + "\n\n")
        Seller.before_last()
        self.piece("data: [DONE]\n\n")
        self.piece("")


def process_of(suite: str) -> int:
    """The `cutegen run` that a worker started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[1:2] == [b"run"] and suite.encode() in words and b"cutegen" in words[0]:
            return int(folder.name)
    return 0


def paid_once(top: Path) -> None:
    """A run is killed after its reply has arrived and before the store has it. Another machine, with another folder of runs,
    goes on: the reply is not paid for again."""
    task = top / "tasks" / "paid.py"
    task.write_text((HOME / "examples/swish.py").read_text())
    Seller.reply = sorted((HOME / "examples/replays/steps/swish").iterdir())[0].read_text()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Seller)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    lock: list[subprocess.Popen[str]] = []

    def hold() -> None:  # no reply gets into the store from here on
        if not lock:
            lock.append(subprocess.Popen(["psql", "-q", "-d", URL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            print("BEGIN; LOCK TABLE calls IN SHARE MODE; \\echo held", file=lock[0].stdin, flush=True)
            lock[0].stdout.readline()

    def worker(machine: str) -> subprocess.Popen[bytes]:
        env = {**os.environ, "CUTEGEN_MODEL": "openai:scripted", "CUTEGEN_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
               "OPENAI_API_KEY": "sk-4711", "CUTEGEN_STORE": URL, "CUTEGEN_RUNS": str(top / machine)}
        words = [PROGRAM, "worker", "--once", "--suite", "paid", "--tasks", str(top / "tasks")]
        return subprocess.Popen(words, env=env, stdout=subprocess.DEVNULL)

    Seller.before_last = staticmethod(hold)
    put_job("paid", '["--depth=0"]', str(task))
    first = worker("one")
    for _ in range(12000):
        if any(f.stat().st_size for f in (top / "one").glob("*/reply-*.json")) or first.poll() is not None:
            break
        time.sleep(0.1)
    pid = process_of("paid")
    ok("a reply has arrived that the store does not have", pid > 0 and psql(
        "SELECT count(*) FROM calls c JOIN runs r ON r.id = c.run WHERE r.suite = 'paid' AND finish_reason = 'in flight'"
    ).stdout.strip() == "1")
    if pid:
        os.kill(pid, signal.SIGKILL)
    if lock:
        lock[0].communicate("COMMIT;\n")
    first.wait()
    state = psql("SELECT state, tries FROM jobs WHERE suite = 'paid'").stdout.strip()
    ok("its task is given back", state == "waiting|1", state)
    psql("UPDATE jobs SET after_ms = 0 WHERE suite = 'paid'")
    worker("two").wait()
    state = psql("SELECT state, problem FROM jobs WHERE suite = 'paid'").stdout.strip()
    ok("another machine goes on to the end", state == "done|", state)
    calls = psql("SELECT finish_reason FROM calls c JOIN runs r ON r.id = c.run WHERE r.suite = 'paid'").stdout.split()
    ok("what was paid for is not asked for again", len(Seller.asked) == len(calls) == 1 and "killed" not in calls, f"{calls} {len(Seller.asked)}")
    ok("no reply is left in a folder", not list(top.glob("*/*/reply-*.json")))
    server.shutdown()


def required(top: Path) -> None:
    psql("DELETE FROM jobs WHERE state = 'waiting'")
    p = cutegen("suite", str(top / "tasks"), "--workers", "none", "--require", "tpu")
    ok("a device that there is not is refused", p.returncode == 2 and "cuda:NAME" in p.stderr, p.stderr)
    words = [PROGRAM, "suite", str(top / "tasks"), "--workers", "none", "--require", "cuda:H200", "--priority", "7", "--store", URL]
    suite = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wanted = "SELECT DISTINCT needs_kind, needs_gpu FROM jobs WHERE priority = 7"
    for _ in range(6000):
        if psql(wanted).stdout.strip() or suite.poll() is not None:
            break
        time.sleep(0.1)
    found = psql(wanted).stdout.strip()
    ok("its tasks wait for the device that was asked for", found == "cuda|H200", found)
    suite.terminate()
    suite.wait()
    p = cutegen("worker", "--idle-exit", "0", "--tasks", str(top / "tasks"))
    left = psql("SELECT count(*) FROM jobs WHERE priority = 7 AND state <> 'waiting'").stdout.strip()
    ok("a worker without it leaves them alone", p.returncode == 0 and left == "0", left)
    psql("DELETE FROM jobs WHERE priority = 7")


def compiled_once(top: Path) -> None:
    """Machines, each with a cache of its own: the second compiles nothing, and believes nothing that was changed."""
    kernel = HOME / "examples/kernels/swish.cu"
    psql("DELETE FROM kernels")

    def compiled(machine: str) -> bool:
        env = {**os.environ, "XDG_CACHE_HOME": str(top / machine)}
        words = [PROGRAM, "compile", str(kernel), "swish<256>", "--arch", "sm_80", "--json", "--store", URL]
        p = subprocess.run(words, env=env, capture_output=True, text=True)
        said = json.loads(p.stdout or "{}")
        if p.returncode or said.get("verdict") != "pass":
            ok(f"machine {machine} compiles", False, p.stdout + p.stderr)
        return not said.get("cached")

    ok("what one machine compiled another does not compile", [compiled("one"), compiled("two")] == [True, False])
    psql("UPDATE kernels SET data = overlay(data placing 'x' from 100)")
    ok("what was changed in the store is compiled again", compiled("three"))
    psql("DELETE FROM kernels")
    compiled("four")
    psql("UPDATE kernels SET data = overlay(data placing 'z' from 18)")  # the first letter of its key
    psql("UPDATE kernels SET sha256 = encode(sha256(data), 'hex')")
    ok("one under another's key is not used", compiled("five"))


def broken_machine(top: Path) -> None:
    """Workers that can start no Python: the suite says that, not that something killed them."""
    os.environ["CUTEGEN_PYTHON"] = "/none"
    p = cutegen("suite", str(top / "tasks"), "--workers", "local:1", "--depth", "0")
    del os.environ["CUTEGEN_PYTHON"]
    said = p.stderr.splitlines()[-2:]
    ok("a suite whose workers cannot judge says why", p.returncode == 3 and "cannot start /none" in "".join(said), p.stderr)
    psql("DELETE FROM jobs WHERE state <> 'done'")


def upkeep(top: Path) -> None:
    """A backup, and the way back from it."""
    p = cutegen("store", "upgrade", "--json")
    backup = json.loads(p.stdout or "{}").get("backup") or ""
    ok("`store upgrade` makes a backup first", p.returncode == 0 and Path(backup).is_file(), p.stdout + p.stderr)
    psql("CREATE DATABASE restored")
    url = URL.replace("///postgres", "///restored")
    subprocess.run(["pg_restore", "--no-owner", "-d", url, backup], capture_output=True)
    reports = [subprocess.run([PROGRAM, "runs", "--json", "--store", u], capture_output=True, text=True).stdout for u in (URL, url)]
    ok("what is restored from it has the same runs", bool(reports[0]) and reports[0] == reports[1], "\n".join(reports))


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        os.chdir(top)
        own = {**os.environ, "CUTEGEN_RUNTIME": f"{top}/rt"}
        os.environ.update(CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=f"{top}/runs", XDG_CONFIG_HOME=f"{top}/config", CUTEGEN_SERVER="yes",
                          CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", f"{top}/rt"))  # the suite's warm server, or its own
        p = cutegen("worker", "--idle-exit", "0", "--tasks", "nowhere")
        ok("a folder that is not there is refused", p.returncode == 2 and "--tasks nowhere" in p.stderr, p.stderr)
        cutegen("worker", "--idle-exit", "0")  # makes the tables
        hostile(top)
        hostile_singles(top)
        roles(top)
        kinds(top)
        drained(top)
        required(top)
        compiled_once(top)
        paid_once(top)
        broken_machine(top)
        upkeep(top)
        subprocess.run([PROGRAM, "server", "stop"], env=own, capture_output=True)
    print(f"1..{done}")
    return failed != 0


sys.exit(main())
