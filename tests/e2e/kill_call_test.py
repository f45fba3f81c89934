"""kill_call_test.py CUTEGEN [TIMES] - kill -9 while a model is asked: the same server, nothing paid twice, nothing unbooked.

The model is a server of this script's own. The moment of each kill is an event, never a time: a random byte of a random
reply, or a random line of the run's own progress. After each kill the run is resumed. Then
- nothing came to the server that the environment names, everything to the one the run began with;
- where the run alone was killed, each prompt was requested as often as it has replies: the process that makes the request (cutegen-caller) goes on,
  and the resumed run finds its reply;
- where that process was killed, too, a reply that had been received whole was not requested again: for each prompt, the replies
  held at the kill and the requests after it are together as many as the replies at the end; and every request that was on its
  way at the kill is listed as a call "killed", with at least the tokens it can have cost, and what the run says it cost
  includes them.
The runs refine, search with two lines and parallel calls, and restart, in turn. Prints TAP and a line of figures.
"""
import collections
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

program = os.path.abspath(sys.argv[1])
times = int(sys.argv[2]) if len(sys.argv) > 2 else 4
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-kill-call-")
dice = random.Random(int(os.environ.get("SEED", "7")))
MAX_TOKENS, PRICE_IN, PRICE_OUT = 3000, 2.0, 10.0
steps = os.path.join(root, "examples/replays/steps/swish")
REPLIES = [open(os.path.join(steps, f)).read() for f in sorted(os.listdir(steps))]


def key_of(contents):
    """A prompt, however a dialect joins its messages."""
    return hashlib.sha256("".join("".join(contents).split()).encode()).hexdigest()


class Model:
    """What the server knows: requests by prompt, and when to kill."""

    def __init__(self):
        self.lock = threading.Lock()
        self.begin(None)

    def begin(self, pid, request=-1, piece=-1, both=False):
        """The process that is killed at that piece of that request's reply; -1: not here. both: and those that ask for it."""
        with self.lock:
            self.pid, self.request, self.piece, self.both = pid, request, piece, both
            self.asked, self.seen = [], 0

    def ask(self, key):
        with self.lock:
            self.asked.append(key)
            self.seen += 1
            return self.seen - 1

    def maybe_kill(self, number, piece):
        with self.lock:
            if self.pid and number == self.request and piece == self.piece:
                kill(self.pid, self.both)
                self.pid = None


def kill(pid, both):
    """The run; then the processes that make its requests, too."""
    os.kill(pid, signal.SIGKILL)
    for other in os.listdir("/proc") if both else []:
        try:
            words = open("/proc/%s/cmdline" % other, "rb").read().split(b"\0")
            if words[0].endswith(b"cutegen-caller") and words[1].startswith(work.encode() + b"/"):
                os.kill(int(other), signal.SIGKILL)
        except (OSError, IndexError, ValueError):
            continue


model, trap = Model(), []


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def piece(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def event(self, **obj):
        self.piece("data: " + json.dumps(dict(id="x", model="scripted-1", **obj)) + "\n\n")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        contents = [m["content"] for m in body["messages"]]
        number = model.ask(key_of(contents))
        # By the kind of question, so that a resumed run gets what an undisturbed one does.
        last = contents[-1]
        text = REPLIES[max(last.count("- depth "), 1) % len(REPLIES) or 1] if "edits for one change" in last else REPLIES[0]
        try:
            self.answer(number, text, sum(map(len, contents)) // 4)
        except OSError:
            pass  # it was killed

    def answer(self, number, text, prompt):
        model.maybe_kill(number, 0)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        cut = max(1, len(text) // 8)
        for i in range(8):
            self.event(choices=[{"index": 0, "delta": {"content": text[i * cut:] if i == 7 else text[i * cut:(i + 1) * cut]}}])
            model.maybe_kill(number, i + 1)
        self.event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
        self.event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": len(text) // 4})
        self.piece("data: [DONE]\n\n")
        self.piece("")
        model.maybe_kill(number, 9)


class Trap(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        trap.append(self.path)
        self.send_error(500)


class Server(http.server.ThreadingHTTPServer):
    open = 0  # connections that were taken and have not ended

    def handle_error(self, request, client_address):
        pass  # whoever asked was killed

    def process_request(self, request, client_address):
        with model.lock:
            self.open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            with model.lock:
                self.open -= 1

    def drain(self):
        """Waits until all that a killed process sent was read: connections are taken in order, and this one is the last."""
        with socket.create_connection(("127.0.0.1", self.server_port)) as last:
            last.shutdown(socket.SHUT_WR)
            last.recv(1)
        while self.open:
            time.sleep(0.01)


def serve(handler):
    server = Server(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, "http://127.0.0.1:%d/v1" % server.server_port


(server, url), (_, trap_url) = serve(Handler), serve(Trap)
with open(os.path.join(work, "prices.json"), "w") as f:
    json.dump({"models": {"openai:scripted": {"input": PRICE_IN, "output": PRICE_OUT}}}, f)
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and k not in ("http_proxy", "OPENAI_BASE_URL")}
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", OPENAI_API_KEY="sk-kill-4711", CUTEGEN_DRAWS="1",
           CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=work + "/rt")  # a warm server of this test's own
RUN = [program, "run", os.path.join(root, "examples/swish.py"), "--model", "openai:scripted", "--base-url", url, "--depth", "2",
       "--max-tokens", str(MAX_TOKENS), "--prices", os.path.join(work, "prices.json"), "--no-report", "--json", "--floor-stop", "0"]
POLICIES = [["--search", "refine"], ["--search", "beam", "--beam", "2", "--parallel-calls", "2"],
            ["--search", "restarts", "--restarts", "2"]]


def store(runs):
    """Calls as (prompt, finish reason, prompt tokens, output tokens, cost), and how many runs there are."""
    if not os.path.exists(runs + "/store.db"):
        return [], 0
    db = sqlite3.connect("file:%s/store.db?mode=ro" % runs, uri=True)
    try:
        found = []
        for call in db.execute("SELECT id, finish_reason, prompt_tokens, output_tokens, cost_usd FROM calls ORDER BY id").fetchall():
            parts = db.execute("SELECT b.data FROM messages m JOIN blobs b ON b.sha256 = m.content WHERE m.call = ? "
                               "ORDER BY m.number", call[:1]).fetchall()
            found.append((key_of([p[0].decode() if isinstance(p[0], bytes) else p[0] for p in parts]),) + call)
        return found, db.execute("SELECT count(*) FROM runs").fetchone()[0]
    except sqlite3.OperationalError:  # killed before the tables were there
        return [], 0
    finally:
        db.close()


def whole(path):
    try:
        json.load(open(path))
        return True
    except (OSError, ValueError):
        return False


def held(runs, calls):
    """Of the calls at the kill: replies that were received whole, and calls that were on their way."""
    got, way = collections.Counter(), []
    folders = [os.path.join(runs, d) for d in os.listdir(runs)] if os.path.isdir(runs) else []
    for key, number, finish, *_ in calls:
        if finish != "in flight" or any(whole("%s/reply-%d.json" % (d, number)) for d in folders):
            got[key] += 1
        else:
            way.append(number)
    return got, way


def killed_run(runs, flags, both):
    """Starts a run and kills it at a random event; false when it ended before that."""
    by_line = tries % 4 == 3
    line = dice.randrange(1, 16)
    model.begin(None, *((-1, -1) if by_line else (dice.randrange(0, 4), dice.randrange(0, 10))), both)
    p = subprocess.Popen(RUN + flags + ["--runs", runs], env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if not by_line:
        with model.lock:
            model.pid = p.pid
    for n, _ in enumerate(p.stdout):
        if by_line and n == line:
            kill(p.pid, both)
    p.stdout.close()
    p.wait()
    with model.lock:
        model.pid = None
    return p.returncode == -signal.SIGKILL


def check_once(done):
    """Of a run whose requests went on: as many as replies (restarts ask some prompts twice)."""
    asked = collections.Counter(model.asked)
    return ["a prompt: %d requests, %d replies" % (asked[k], done[k]) for k in set(done) | set(asked) if asked[k] != done[k]]


def check_booked(got, way, after, done, booked):
    """Of a run whose requests were cut: what had arrived is not asked for again, what had not is booked."""
    bad = []
    for key in set(done) | set(after):
        if got[key] + after[key] != done[key]:
            bad.append("a prompt: %d replies held at the kill, %d requests after it, %d replies at the end"
                       % (got[key], after[key], done[key]))
    if sorted(c[1] for c in booked) != sorted(way):
        bad.append("calls on their way: %s, listed as killed: %s" % (way, [c[1] for c in booked]))
    return bad


def check(runs, flags, both):
    """Problems after one kill and one resume; None when there was no kill."""
    if not killed_run(runs, flags, both):
        return None, 0, 0
    if both:
        server.drain()
    before = len(model.asked)
    calls, begun = store(runs)
    got, way = held(runs, calls)
    words = [program, "resume", "last", "--no-report", "--json"] if begun else RUN + flags
    said = subprocess.run(words + ["--runs", runs], env=dict(env, OPENAI_BASE_URL=trap_url), cwd=work, capture_output=True,
                          text=True)
    if said.returncode:
        return ["exit %d: %s" % (said.returncode, (said.stdout + said.stderr)[-400:])], len(way), begun
    bad = ["%d requests to another server" % len(trap)] if trap else []
    now = store(runs)[0]
    done = collections.Counter(c[0] for c in now if c[2] not in ("killed", "in flight"))
    booked = [c for c in now if c[2] == "killed"]
    bad += check_booked(got, way, collections.Counter(model.asked[before:]), done, booked) if both else check_once(done)
    for c in booked:
        if c[4] != MAX_TOKENS or c[3] <= 0 or abs(c[5] - (c[3] * PRICE_IN + c[4] * PRICE_OUT) / 1e6) > 1e-9:
            bad.append("not its upper bound: %s" % (c[3:],))
    if len(model.asked) > len(now):
        bad.append("%d requests, but %d calls are listed" % (len(model.asked), len(now)))
    result = json.loads(said.stdout.strip().split("\n")[-1])
    if abs(result["cost_usd"] - sum(c[5] for c in now)) > 1e-9 or result["calls"] != len(now):
        bad.append("the run says %d calls and $%g, the list %d and $%g"
                   % (result["calls"], result["cost_usd"], len(now), sum(c[5] for c in now)))
    return bad, len(way), begun


problems, kills, on_their_way, tries = [], 0, 0, 0
figures = collections.Counter()
while kills < times and tries < 10 * times + 20:
    tries += 1
    runs = os.path.join(work, "r%d" % tries)
    policy = POLICIES[tries % len(POLICIES)]
    both = dice.random() < 0.4
    found, way, begun = check(runs, policy, both)
    if found is not None:
        kills += 1
        on_their_way += way
        figures["%s" % policy[1]] += 1
        figures["with a call on its way"] += way > 0
        figures["of the run alone, with a call on its way"] += way > 0 and not both
        figures["before the run was in the store"] += not begun
        figures["at a byte of a reply" if tries % 4 != 3 else "at a line of progress"] += 1
        problems += ["kill %d: %s" % (kills, p) for p in found]
    shutil.rmtree(runs, ignore_errors=True)
subprocess.run([program, "server", "stop"], env=env, cwd=work, capture_output=True, check=False)
shutil.rmtree(work, ignore_errors=True)
if kills < times:
    problems.append("only %d of %d runs could be killed" % (kills, times))
print("%s 1 - killed at %d random events with %d calls on their way: same server, no prompt asked for twice, but where the process "
      "that asks was killed; that is booked at its upper bound" % ("not ok" if problems else "ok", kills, on_their_way))
for p in problems:
    print("#", p)
print("#", ", ".join("%s: %d" % item for item in figures.items()))
print("1..1")
sys.exit(bool(problems))
