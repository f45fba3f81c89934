"""live_test.py CUTEGEN [PICTURES] - the live page: who gets in, and what a real browser shows of a suite while it runs.

PICTURES is a folder for screenshots at 1400 and 400 pixels, light and dark, of a larger suite: two tasks are done, two run, two
wait (docs/pictures was made by this). Prints TAP; the part with a browser is skipped where there is none.
"""
import atexit
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import browser

program = os.path.abspath(sys.argv[1])
pictures = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-live-")
runs = os.path.join(work, "runs")
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_DRAWS="1", CUTEGEN_RUNS=runs, OPENAI_API_KEY="sk-live-4711",
           CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", work + "/rt"))  # the suite's warm server, or its own
count = failed = 0


def ok(sentence, good, why="", skip=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s%s" % ("ok" if good else "not ok", count, sentence, " # SKIP " + skip if skip else ""))
    if not good:
        print("#", str(why)[-1500:].replace("\n", "\n# "))


live = subprocess.Popen([program, "live", "--json"], env=env, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
atexit.register(live.kill)
url = json.loads(live.stdout.readline())["url"]
port, token = int(url.split(":")[2].split("/")[0]), url.split("#")[1]


def ask(path, method="GET", host=None, key=token, body=None):
    """Status, headers and body of one request."""
    c = http.client.HTTPConnection("127.0.0.1", port)
    c.putrequest(method, path, skip_host=True)
    c.putheader("Host", host or "127.0.0.1:%d" % port)
    if key:
        c.putheader("Authorization", "Bearer " + key)
    if body:
        c.putheader("Content-Length", str(len(body)))
    c.endheaders(body)
    r = c.getresponse()
    found = r.status, dict(r.getheaders()), r.read().decode()
    c.close()
    return found


# ---- who gets in -------------------------------------------------------------------
status, headers, body = ask("/view")
ok("with the token there is a page, also before the first run", status == 200 and "No runs yet" in body, body)
status, headers, body = ask("/", key=None)
ok("the shell needs no token and holds none", status == 200 and token not in body and "nonce" in body, body[:300])
policy = headers.get("Content-Security-Policy", "")
ok("it runs its own script only", "default-src 'none'" in policy and "script-src 'nonce-" in policy and "unsafe-inline" not in
   policy.split("script-src")[1].split(";")[0], policy)
ok("it is not cached and sets no cookie", headers.get("Cache-Control") == "no-store" and "Set-Cookie" not in headers, headers)
for what, key in [("without the token", None), ("with a wrong one", token[:-1] + ("0" if token[-1] != "0" else "1")), ("with half of it", token[:20])]:
    status, _, body = ask("/view", key=key)
    ok("%s there is nothing" % what, status == 401 and "run" not in body, (status, body))
for host in ["evil.example:%d" % port, "127.0.0.1.evil.example:%d" % port, "localhost", "127.0.0.1:1"]:
    status, _, body = ask("/view", host=host)
    ok("not by the name %s (DNS rebinding)" % host.replace(str(port), "PORT"), status == 403, (status, body))
ok("localhost is this machine", ask("/view", host="localhost:%d" % port)[0] == 200)
for method in ["POST", "PUT", "DELETE", "OPTIONS"]:
    status, _, body = ask("/view", method=method, body=b"x=1" if method in ("POST", "PUT") else None)
    ok("%s is refused" % method, status == 405, (status, body))
for path in ["/view/run/../../../etc/passwd", "/view/run/%2e%2e%2f%2e%2e%2fstore.db", "/../../etc/passwd", "/runs/store.db",
             "/view/run/", "/view/suite/last", "/view/run/last", "/view/run/" + "x" * 9000, "//etc/passwd"]:
    status, _, body = ask(path)
    ok("%.40s is no page" % path, status in (404, 414, 431) and "root:" not in body, (status, body[:200]))
with open("/proc/net/tcp") as f:
    mine = [line.split() for line in f if line.split()[1].endswith(":%04X" % port) and line.split()[3] == "0A"]
ok("it listens on this machine alone", len(mine) == 1 and mine[0][1].startswith("0100007F:"), mine)

# ---- a suite while it runs, in a browser ----------------------------------------------
gate = os.path.join(work, "gate")
# Name of the task and of the example it is a copy of.
TASKS = {"swish_small": "swish", "swish_wide": "swish", "swish_last": "swish"}
if pictures:
    TASKS = {"a_square_matmul": "square_matmul", "b_row_sum": "row_sum", "c_swish": "swish", "d_matmul_again": "square_matmul",
             "e_row_sum_again": "row_sum", "f_swish_again": "swish"}
free = list(TASKS)[:2] if pictures else []  # these never wait
MODEL = '''import os, subprocess, sys, time
tasks, free, gate, answers = %r, %r, %r, %d
prompt = sys.stdin.read()
name = min((t for t in tasks if t in prompt), key=prompt.index)
draws = %r + name
# The first questions of a run are answered at once, the others when the gate is open.
while name not in free and os.path.exists(draws) and os.path.getsize(draws) >= answers and not os.path.exists(gate):
    time.sleep(0.2)
words = [sys.executable, %r, "5", draws, "task=" + tasks[name], "fault=%g"]
sys.exit(subprocess.run(words, input=prompt, text=True).returncode)
''' % (TASKS, free, gate, 4 if pictures else 1, work + "/draws.", root + "/bench/loop/stochastic.py", 0.25 if pictures else 0)
with open(os.path.join(work, "model.py"), "w") as f:
    f.write(MODEL)
tasks = os.path.join(work, "tasks")
os.mkdir(tasks)
for name, example in TASKS.items():
    shutil.copy(os.path.join(root, "examples", example + ".py"), os.path.join(tasks, name + ".py"))
suite = None


def start_suite():
    return subprocess.Popen([program, "suite", tasks, "--jobs", "2", "--model", "exec:python3 model.py", "--depth", "4" if pictures else "2",
                             "--floor-stop", "0", "--json"], env=env, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def in_browser():
    """What is shown, in order; every step waits for what it wants to see."""
    global suite
    with browser.Browser() as b:
        page = b.open(url)
        ok("a browser shows the page", page.wait("document.getElementById('say').textContent == 'live'"))
        ok("and the token is no longer in its address", token not in page.value("location.href"))
        page.value("window.mark = 1")
        suite = start_suite()
        seen = page.wait("document.querySelectorAll('.state.running').length >= 3 && document.body.innerText.includes('of %d tasks done')" % len(TASKS))
        ok("the suite and its runs appear while they go on", seen, page.value("document.body.innerText"))
        # A correct kernel: each of the two runs has a time; before pictures, two more are done.
        ok("with the times they have", page.wait("document.querySelectorAll('tbody strong').length >= %d" % (2 + len(free))),
           page.value("document.body.innerText"))
        ok("no sideways scrolling at 400 pixels", fits(page, 400))
        shots(page, "overview")
        page.value("location.hash = document.querySelector('.suite-card a').hash")
        ok("a suite opens", page.wait("document.body.innerText.includes('How many are how fast')"), page.value("document.body.innerText"))
        ok("nor is there here", fits(page, 400))
        ok("a running task took some time", page.wait("!document.body.innerText.includes('0 ms')"), page.value("document.body.innerText"))
        shots(page, "suite")
        page.value("location.hash = '#/'")
        open(gate, "w").close()
        ok("the end of the suite is seen", page.wait("document.body.innerText.includes('%d of %d tasks done, 0 running')" % (len(TASKS), len(TASKS))),
           page.value("document.body.innerText"))
        page.value("location.hash = document.querySelector('tbody a').hash")
        ok("a run opens as its report", page.wait("document.body.innerText.includes('The kernel')"), page.value("document.body.innerText"))
        ok("all without loading the page again", page.value("window.mark") == 1)
        live.send_signal(signal.SIGINT)
        ok("Ctrl-C ends the server", live.wait() == 0)
        ok("and the page says so", page.wait("document.getElementById('say').textContent == 'cutegen live has ended'"))


def fits(page, width):
    page.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=True)
    return page.value("document.documentElement.scrollWidth") <= width


def shots(page, name):
    if not pictures:
        return
    os.makedirs(pictures, exist_ok=True)
    for width in (1400, 400):
        for dark in (False, True):
            page.shot("%s/live-%s-%d-%s.png" % (pictures, name, width, "dark" if dark else "light"), width, 1300, dark=dark)


if browser.found():
    try:
        in_browser()
    finally:
        open(gate, "w").close()
        if suite:
            suite.wait()
else:
    ok("in a browser", True, skip="no Chromium")
text = "".join(ask(p)[2] for p in ["/view"]) if live.poll() is None else ""
ok("no key is on a page", "sk-live" not in text)
live.kill()
live.wait()
subprocess.run([program, "server", "stop"], env={**env, "CUTEGEN_RUNTIME": work + "/rt"}, capture_output=True)
shutil.rmtree(work, ignore_errors=True)
print("1..%d" % count)
sys.exit(bool(failed))
