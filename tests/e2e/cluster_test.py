# SPDX-License-Identifier: Apache-2.0
"""A suite done by workers, on a PostgreSQL server and a Slurm that belong to the test; then suites with faults all the
time: processes are killed, connections dropped or frozen, the server's disk is full for a while, and one worker's clock
is an hour ahead. The model of those is a server of this test's own, whose every reply is paid for. BUILDERS=slurm:1 has others
compile for the first suite. KILL_RUNS=1 kills processes of tasks, too, and has replies take longer, so that many are cut.
KILL_CALLS=1 also kills the processes that make the requests: a reply that is lost with them is booked, and asked for again.
Started by cluster.sh:

    tests/e2e/cluster.sh CUTEGEN [TASKS [KILLS [MEAN_S [TASKS_WITH_FAULTS]]]]

KILLS counts SIGKILLs; about half as many other faults come on top. A checker reads the store afterwards: every task
ended once, one run each, attempts without gaps, one verdict for each, and the same kernels as in an undisturbed run. It
compares calls with requests: one request and one reply for each prompt. With KILL_CALLS, as many requests more as calls are
booked as killed.
"""

from __future__ import annotations

import collections
import hashlib
import http.server
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PROGRAM = str(Path(sys.argv[1]).resolve())
TASKS = int(sys.argv[2]) if len(sys.argv) > 2 else 12
KILLS = int(sys.argv[3]) if len(sys.argv) > 3 else 8
MEAN_S = float(sys.argv[4]) if len(sys.argv) > 4 else 3.0
RUNS_TOO = os.environ.get("KILL_RUNS", "") == "1"  # also the processes of tasks
CALLS_TOO = os.environ.get("KILL_CALLS", "") == "1"  # and those that make requests: what is cut then is paid for again
BUILDERS = os.environ.get("BUILDERS", "")  # --builders of the first suite
FIRE_TASKS = int(sys.argv[5]) if len(sys.argv) > 5 else TASKS
HOME = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("SEED", "0")) or random.randrange(1, 1 << 30)
URL = os.environ["CUTEGEN_TEST_STORE"]
DATA = os.environ["PGDATA_OF_TEST"]
FAULTS = os.environ.get("FAULTS_LIBRARY", "")
FULL = os.environ.get("FAULTS_FULL_FLAG", "")
WORKERS = 3
CLOCKS_S = [0, 3600, -3600]  # how wrong each worker's clock is
LEASE_S = 4

TASK = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [torch.randn({rows}, {columns})]

def get_init_inputs():
    return []
"""
EXPRESSIONS = ["torch.relu(x) * {k}", "torch.sigmoid(x) + {k}", "torch.tanh(x * {k})", "x * x + {k}"]

REPLIES = [f.read_text() for f in sorted((HOME / "examples/replays/steps/swish").iterdir())]

done = 0
failed = 0


def ok(what: str, good: bool, more: str = "") -> None:
    global done, failed
    done += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {done} - {what}", flush=True)
    if not good and more:
        print("\n".join("# " + line for line in more.splitlines()[-40:]), flush=True)


def sql(text: str) -> list[list[str]]:
    out = subprocess.run(["psql", "-d", URL, "-AtF", "|", "-c", text], check=True, capture_output=True, text=True).stdout
    return [line.split("|") for line in out.splitlines()]


def cutegen(*words: str, timeout: int = 3600) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *words, "--store", URL], capture_output=True, text=True, timeout=timeout)


def write_tasks(folder: Path) -> None:
    """Few modules under many names: what one worker has compiled the others need not."""
    for i in range(TASKS):
        expression = EXPRESSIONS[i % len(EXPRESSIONS)].format(k=2)
        (folder / f"{i + 1}_task.py").write_text(f"# task {i + 1}\n" + TASK.format(expression=expression, rows=64, columns=128))


def write_paid_tasks(folder: Path) -> None:
    """One module, whose kernels the model knows; other texts, so that no two prompts are the same."""
    text = (HOME / "examples/swish.py").read_text()
    for i in range(FIRE_TASKS):
        (folder / f"{i + 1}_swish.py").write_text(f"# task {i + 1} of {FIRE_TASKS}\n{text}")


def key_of(contents: list[str]) -> str:
    return hashlib.sha256("".join("".join(contents).split()).encode()).hexdigest()


class Seller(http.server.BaseHTTPRequestHandler):
    """A model that is paid for every request. Replies take a moment, so that some are cut."""

    protocol_version = "HTTP/1.1"
    asked: collections.Counter[str] = collections.Counter()  # requests by prompt
    sent: collections.Counter[str] = collections.Counter()  # replies that left here whole

    def log_message(self, *args: object) -> None:
        pass

    def piece(self, text: str) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text.encode()), text.encode()))
        self.wfile.flush()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        contents = [m["content"] for m in body["messages"]]
        key, last = key_of(contents), contents[-1]
        self.asked[key] += 1
        # By the kind of question, so that a resumed run gets what an undisturbed one does.
        text = REPLIES[max(last.count("- depth "), 1) % len(REPLIES) or 1] if "edits for one change" in last else REPLIES[0]
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for choice in ({"delta": {"content": text[:20]}}, {"delta": {"content": text[20:]}}, {"delta": {}, "finish_reason": "stop"}):
                time.sleep(random.uniform(0.2, 2.5) if RUNS_TOO else 0.3)
                self.piece("data: " + json.dumps({"id": "x", "model": "scripted-1", "choices": [{"index": 0, **choice}]}) + "\n\n")
            self.piece("data: [DONE]\n\n")
            self.piece("")
            self.sent[key] += 1
        except OSError:
            pass  # whoever asked was killed


class Market(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def check_paid(suite: str) -> tuple[str, str]:
    """What is wrong with what was paid for, and the figures."""
    calls: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    prompts: dict[str, list[str]] = collections.defaultdict(list)
    reasons = {}
    for call, reason, data in sql(f"""SELECT c.id, c.finish_reason, encode(b.data, 'hex') FROM calls c JOIN runs r ON r.id = c.run
            JOIN messages m ON m.call = c.id JOIN blobs b ON b.sha256 = m.content
            WHERE r.suite = '{suite}' ORDER BY c.id, m.number"""):
        prompts[call].append(bytes.fromhex(data).decode())
        reasons[call] = "killed" if reason in ("killed", "in flight") else "received"
    for call, contents in prompts.items():
        calls[key_of(contents)][reasons[call]] += 1
    wrong = []
    for key, count in calls.items():
        if count["received"] != 1:
            wrong.append(f"a prompt with {count['received']} replies")
        if Seller.asked[key] > count["received"] + (count["killed"] if CALLS_TOO else 0):
            wrong.append(f"{Seller.asked[key]} requests, but {dict(count)} calls are booked")
    requests, killed = sum(Seller.asked[k] for k in calls), sum(c["killed"] for c in calls.values())
    twice = sum(Seller.sent[k] > 1 for k in calls)
    if twice and not CALLS_TOO:
        wrong.append(f"{twice} replies were sent whole twice")
    return "\n".join(wrong), f"{len(calls)} prompts, {requests} requests, {killed} calls cut and booked, {twice} sent whole twice"


def kernels(suite: str) -> dict[str, str]:
    """The source of the best kernel by task."""
    rows = sql(f"""SELECT t.path, v.kind || ' ' || c.source FROM runs r JOIN tasks t ON t.id = r.task
        JOIN attempts a ON a.run = r.id JOIN candidates c ON c.id = a.candidate
        JOIN verdicts v ON v.run = a.run AND v.attempt = a.number
        WHERE r.suite = '{suite}' ORDER BY t.path, a.number""")
    return {row[0]: row[1] for row in rows}


def check_history(suite: str) -> str:
    """What is wrong with the suite's history; empty: nothing."""
    checks = {
        "tasks that did not end": f"SELECT path, problem FROM suite_tasks WHERE suite = '{suite}' AND ended = 0",
        "jobs that are not done": f"SELECT number, state, problem FROM jobs WHERE suite = '{suite}' AND state <> 'done'",
        "tasks with more or fewer than one run": f"""SELECT s.path, count(r.id) FROM suite_tasks s
            LEFT JOIN (runs r JOIN tasks t ON t.id = r.task) ON r.suite = s.suite AND t.path = s.path
            WHERE s.suite = '{suite}' GROUP BY s.path HAVING count(r.id) <> 1""",
        "runs that are not done": f"SELECT id, state, reason FROM runs WHERE suite = '{suite}' AND state <> 'done'",
        "attempts without an end": f"""SELECT a.run, a.number FROM attempts a JOIN runs r ON r.id = a.run
            WHERE r.suite = '{suite}' AND a.ended_ms IS NULL""",
        "attempts without one verdict": f"""SELECT a.run, a.number FROM attempts a JOIN runs r ON r.id = a.run
            LEFT JOIN verdicts v ON v.run = a.run AND v.attempt = a.number
            WHERE r.suite = '{suite}' GROUP BY a.run, a.number HAVING count(v.kind) <> 1""",
        "gaps in the numbers": f"""SELECT a.run FROM attempts a JOIN runs r ON r.id = a.run
            WHERE r.suite = '{suite}' GROUP BY a.run HAVING max(a.number) <> count(*)""",
    }
    return "\n".join(f"{what}: {rows}" for what, text in checks.items() if (rows := sql(text)))


def suite_name(out: str) -> str:
    found = re.search(r"^suite +(\S+)", out, re.M)
    return found[1] if found else ""


def by_slurm(folder: Path) -> str:
    builders = ["--builders", BUILDERS] if BUILDERS else []
    p = cutegen("suite", str(folder), "--workers", "slurm:2", "--depth", "0", *builders)
    name = suite_name(p.stdout)
    ok(f"{TASKS} tasks by two workers that Slurm launched", p.returncode == 0, p.stdout + p.stderr)
    ok("nothing lost, nothing doubled", bool(name) and not check_history(name), check_history(name))
    hosts = sql("SELECT count(*) FROM workers WHERE jobs > 0")
    ok("a worker did them", int(hosts[0][0]) >= 1)
    compiled = int(sql("SELECT count(*) FROM jobs WHERE kind = 'compile' AND state = 'done'")[0][0])
    ok(f"{compiled} kernels were compiled by workers that do nothing else" if builders else "workers compiled for themselves",
       (compiled > 0) == bool(builders))
    top = json.loads(cutegen("top", "--json").stdout)
    ok("`top` counts them", top["jobs"]["done"] == TASKS + compiled, str(top))
    return name


def moved(suite: str) -> None:
    """From the server into a folder: the same reports, and whole."""
    p = subprocess.run([PROGRAM, "store", "copy", URL, "moved"], capture_output=True, text=True)
    run = sql(f"SELECT id FROM runs WHERE suite = '{suite}' ORDER BY id LIMIT 1")[0][0]
    here = cutegen("report", run, "--output", "here.html")
    there = subprocess.run([PROGRAM, "report", run, "--runs", "moved", "--output", "there.html"], capture_output=True)
    same = here.returncode == there.returncode == 0 and Path("here.html").read_bytes() == Path("there.html").read_bytes()
    ok("a run moved into a folder has the same report, byte for byte", p.returncode == 0 and same, p.stderr)
    check = cutegen("store", "check")
    ok("the store is whole", check.returncode == 0 and "0 faults" in check.stdout, check.stdout + check.stderr)


class Proxy:
    """A socket between the clients and the server, whose connections can be cut or frozen."""

    def __init__(self, folder: Path) -> None:
        found = re.search(r"host=([^&]+)", URL)
        assert found
        self.server = f"{found[1]}/.s.PGSQL.5432"
        folder.mkdir()
        self.url = URL.replace(found[1], str(folder))
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(f"{folder}/.s.PGSQL.5432")
        self.listener.listen(128)
        self.pairs: list[tuple[socket.socket, socket.socket]] = []
        self.frozen: dict[socket.socket, float] = {}  # until when nothing passes
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.listener.accept()
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server)
            except OSError:
                client.close()
                continue
            with self.lock:
                self.pairs.append((client, server))
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b, client), daemon=True).start()

    def pump(self, a: socket.socket, b: socket.socket, client: socket.socket) -> None:
        try:
            while data := a.recv(65536):
                while self.frozen.get(client, 0) > time.monotonic():
                    time.sleep(0.05)
                b.sendall(data)
        except OSError:
            pass
        self.close(a, b)

    def close(self, a: socket.socket, b: socket.socket) -> None:
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        with self.lock:
            self.pairs = [p for p in self.pairs if a not in p]

    def some(self) -> list[tuple[socket.socket, socket.socket]]:
        with self.lock:
            return random.sample(self.pairs, random.randint(1, len(self.pairs))) if self.pairs else []

    def drop(self) -> bool:
        chosen = self.some()
        for a, b in chosen:
            self.close(a, b)
        return bool(chosen)

    def freeze(self) -> bool:
        """Half-open: nothing passes for longer than a lease; what was under way then arrives late."""
        chosen = self.some()
        for client, _ in chosen:
            self.frozen[client] = time.monotonic() + 1.5 * LEASE_S
        return bool(chosen)


PAID = ["--depth", "1", "--model", "openai:scripted", "--draws", "1", "--floor-stop", "0"]


class Cluster:
    """Workers and an orchestrator, kept running while they are killed."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self.folder = folder
        self.proxy = proxy
        self.name = ""
        self.log = open(folder.parent / "cluster.log", "w")
        self.workers: list[subprocess.Popen[bytes] | None] = [None] * WORKERS
        self.orchestrator: subprocess.Popen[bytes] | None = None
        self.out = Path(tempfile.mkstemp(dir=folder.parent)[1])

    def start(self, *words: str, out: Path | None = None, clock_s: int = 0) -> subprocess.Popen[bytes]:
        to = open(out, "wb") if out else self.log
        env = {**os.environ, "LD_PRELOAD": FAULTS, "FAULTS_CLOCK_S": str(clock_s)} if clock_s and FAULTS else None
        return subprocess.Popen(
            [PROGRAM, *words, "--store", self.proxy.url], stdout=to, stderr=self.log, start_new_session=True, env=env
        )

    def tend(self) -> None:
        for i, w in enumerate(self.workers):
            if w is None or w.poll() is not None:
                self.workers[i] = self.start("worker", "--tasks", str(self.folder), "--lease", str(LEASE_S), clock_s=CLOCKS_S[i])
        if self.orchestrator is None or self.orchestrator.poll() not in (None, 0):
            if not self.name:
                self.name = suite_name(self.out.read_text())
            words = ["--resume", self.name] if self.name else [str(self.folder)]
            self.orchestrator = self.start("suite", *words, "--workers", "none", *PAID, out=self.out)

    def finished(self) -> bool:
        return self.orchestrator is not None and self.orchestrator.poll() == 0

    def end(self) -> None:
        for w in self.workers:
            if w and w.poll() is None:
                w.send_signal(signal.SIGTERM)
        for w in self.workers:
            if w:
                w.wait(timeout=1200)


def postmaster() -> int:
    """Our server's first process; 0: it has none."""
    try:
        pid = int(Path(DATA, "postmaster.pid").read_text().split()[0])
        os.kill(pid, 0)
        return pid
    except (OSError, ValueError, IndexError):
        return 0


def kill_backend() -> bool:
    # A client backend: killed, the server ends all others too and recovers.
    parent = postmaster()
    for pid in random.sample(pids := [p for p in os.listdir("/proc") if p.isdigit()], len(pids)):
        try:
            ours = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1] == str(parent)
            if ours and Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"postgres: cutegen "):
                os.kill(int(pid), signal.SIGKILL)
                return True
        except (OSError, IndexError):
            continue
    return False


def server_answers() -> None:
    """Waits for it, and starts it where it has ended itself."""
    while subprocess.run(["psql", "-d", URL, "-c", "SELECT 1"], capture_output=True).returncode:
        if not postmaster():
            subprocess.run([os.environ["POSTGRES_RESTART"]], check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.2)


def kill_server() -> bool:
    os.kill(postmaster(), signal.SIGKILL)
    subprocess.run([os.environ["POSTGRES_RESTART"]], check=True, stdout=subprocess.DEVNULL)
    return True


def fill_disk() -> bool:
    Path(FULL).touch()
    time.sleep(2)
    Path(FULL).unlink()
    server_answers()  # where its log could not be written, it has ended itself
    return True


def kill_run(c: Cluster) -> bool:
    """The process of a task: maybe in the middle of a reply."""
    for pid in random.sample(pids := [p for p in os.listdir("/proc") if p.isdigit()], len(pids)):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[1:2] in ([b"run"], [b"resume"]) and c.name and c.name.encode() in words:
                os.kill(int(pid), signal.SIGKILL)
                return True
        except OSError:
            continue
    return False


def callers(c: Cluster) -> list[int]:
    """The processes that make requests, of this test's runs."""
    found = []
    for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"cutegen-caller") and words[1].startswith(f"{c.folder.parent}/".encode()):
                found.append(int(pid))
        except (OSError, IndexError):
            continue
    return found


def kill_call(c: Cluster) -> bool:
    for pid in callers(c):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def disturb(c: Cluster, what: str) -> bool:
    if what == "run":
        c.name = c.name or suite_name(c.out.read_text())
        return kill_run(c)
    if what == "call":
        return kill_call(c)
    if what == "backend":
        return kill_backend()
    if what == "drop":
        return c.proxy.drop()
    if what == "freeze":
        return c.proxy.freeze()
    if what == "full disk":
        return bool(FULL) and fill_disk()
    if what == "server":
        server_answers()
        return kill_server()
    p = c.orchestrator if what == "orchestrator" else random.choice(c.workers)
    if p is None or p.poll() is not None:
        return False
    p.kill()
    p.wait()
    return True


KILLED = ["worker"] * 5 + (["run"] * 4 if RUNS_TOO else []) + (["call"] * 2 if CALLS_TOO else []) + ["orchestrator"] * 2 + ["backend"] * 2 + ["server"]
OTHERS = ["drop"] * 3 + ["freeze"] * 2 + ["full disk"]
during: collections.Counter[str] = collections.Counter()  # faults while a model was being asked


def kills(counts: dict[str, int]) -> int:
    return sum(n for what, n in counts.items() if what in KILLED)


def under_fire(folder: Path, proxy: Proxy, counts: dict[str, int]) -> str:
    c = Cluster(folder, proxy)
    while not c.finished():
        c.tend()
        time.sleep(min(random.expovariate(1 / MEAN_S), 4 * MEAN_S) if kills(counts) < KILLS else 0.2)
        if kills(counts) < KILLS and not c.finished():
            what = random.choice(KILLED if random.random() < 2 / 3 else OTHERS)
            under_way = len(callers(c))
            counts[what] = counts.get(what, 0) + disturb(c, what)
            during[what] += under_way > 0
    c.end()
    return c.name or suite_name(c.out.read_text())


def sources(suite: str) -> dict[str, list[str]]:
    """Verdict and kernel of every attempt, by task."""
    rows = sql(f"""SELECT t.path, v.kind || ' ' || c.source FROM runs r JOIN tasks t ON t.id = r.task
        JOIN attempts a ON a.run = r.id JOIN candidates c ON c.id = a.candidate
        JOIN verdicts v ON v.run = a.run AND v.attempt = a.number
        WHERE r.suite = '{suite}' ORDER BY t.path, a.number""")
    found: dict[str, list[str]] = {}
    for path, what in rows:
        found.setdefault(path, []).append(what)
    return found


def undisturbed(folder: Path) -> list[str]:
    """What a run of one of the tasks comes to without faults."""
    one = folder.parent / "calm"
    one.mkdir()
    (one / "1_swish.py").write_text((folder / "1_swish.py").read_text())
    p = cutegen("suite", str(one), "--workers", "local:1", *PAID)
    name = suite_name(p.stdout)
    found = list(sources(name).values()) if name else []
    ok("a task is done by a model that is paid", p.returncode == 0 and len(found) == 1 and len(found[0]) == 2, p.stdout + p.stderr)
    wrong, figures = check_paid(name) if name else ("no suite", "")
    ok("each prompt was asked for once", not wrong and ", 0 calls cut" in figures, wrong + figures)
    Seller.asked.clear()
    Seller.sent.clear()
    return found[0] if found else []


def rounds(folder: Path, calm: list[str]) -> None:
    """Suites under fire, until enough was killed."""
    counts: dict[str, int] = {}
    number = 0
    proxy = Proxy(folder.parent / "proxy")
    while kills(counts) < KILLS:
        before = sum(counts.values())
        number += 1
        name = under_fire(folder, proxy, counts)
        wrong = check_history(name) if name else "no suite"
        faults = sum(counts.values()) - before
        ok(f"suite {number} ends after {faults} faults: nothing lost, nothing doubled", not wrong, wrong)
        found = sources(name)
        other = [f"{task}: {', '.join(t.split(' ', 1)[0] for t in s)}" for task, s in found.items() if s != calm]
        ok("the same kernels as without faults", len(found) == FIRE_TASKS and not other, f"{len(found)} tasks; {'; '.join(other)}")
        wrong, figures = check_paid(name)
        ok(f"no reply is paid for twice: {figures}", not wrong, wrong)
        Seller.asked.clear()
        Seller.sent.clear()
    check = cutegen("store", "check")
    ok("the store is whole after them", check.returncode == 0 and "0 faults" in check.stdout, check.stdout + check.stderr)
    print(f"# faults: {counts}; workers' clocks wrong by {CLOCKS_S} s", flush=True)
    print(f"# of them while a model was being asked: {dict(during)}", flush=True)


def main() -> int:
    random.seed(SEED)
    print(f"# seed {SEED}", flush=True)
    market = Market(("127.0.0.1", 0), Seller)
    threading.Thread(target=market.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as top:
        os.chdir(top)
        # With a warm server of its own, which starts the processes that make requests: they outlive runs and workers.
        os.environ.update(CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=f"{top}/rt", CUTEGEN_SERVER_IDLE="60",
                          CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=f"{top}/runs", XDG_CONFIG_HOME=f"{top}/config",
                          OPENAI_API_KEY="sk-cluster-4711", CUTEGEN_BASE_URL=f"http://127.0.0.1:{market.server_port}/v1")
        folder, fire = Path(top, "tasks"), Path(top, "fire")
        folder.mkdir()
        fire.mkdir()
        write_tasks(folder)
        write_paid_tasks(fire)
        if BUILDERS:
            os.environ["XDG_CACHE_HOME"] = f"{top}/cache"
        calm = by_slurm(folder)
        ok("every task has its kernel", len(kernels(calm)) == TASKS)
        moved(calm)
        rounds(fire, undisturbed(fire))
        subprocess.run([PROGRAM, "server", "stop"], capture_output=True)
    print(f"1..{done}")
    return failed != 0


sys.exit(main())
