"""judge_test.py CUTEGEN [FULL] - the MCP tools on real kernels, then by the reference client (PyPI `mcp`).

The reference client runs in the Python that $CUTEGEN_MCP_PYTHON names, or that set-up made; without one its lines are
skipped. FULL: it goes through all tools at every revision over both transports (make sweep). Prints TAP.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile

from client import PATIENCE, Http, Listening, Stdio, children, meta_of, wait_until

program = os.path.abspath(sys.argv[1])
full = len(sys.argv) > 2
here = os.path.dirname(os.path.abspath(__file__))
root = os.path.abspath(os.path.join(here, "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-mcp-test-")
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
# A warm server of this test alone: what is judged often starts PyTorch once.
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=work + "/runs", CUTEGEN_HOME=root, CUTEGEN_DRAWS="1",
           CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=work + "/runtime")
count = failed = 0


def ok(sentence, good, why="", skip=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s%s" % ("ok" if good else "not ok", count, sentence, " # SKIP " + skip if skip else ""), flush=True)
    if not good:
        print("#", str(why)[-1500:].replace("\n", "\n# "), flush=True)


task, right, wrong = root + "/examples/swish.py", here + "/swish.cu", work + "/wrong.cu"
with open(right) as f:
    source = f.read()
with open(wrong, "w") as f:
    f.write(source.replace("if (i < n)", "if (i < n - 1)"))


def tools():
    s = Stdio(program, "2025-11-25", env, work)
    ident = s.begin("tools/call", {"name": "evaluate_kernel", "arguments": {"task": task, "kernel": right, "target": "cuda"}}, progressToken="p")
    r = s.wait(ident)["result"]
    ok("a right kernel passes", r["structuredContent"]["pass"] and r["structuredContent"]["modelled"], r)
    held = json.loads(subprocess.run([program, "server", "status", "--json"], env=env, capture_output=True).stdout)
    ok("what was started for it stays warm for the next", held["running"], held)
    steps = []
    while not s.notices.empty():
        steps.append(s.notices.get()["params"])
    ok("its steps were told as they began", [x["progress"] for x in steps] == list(range(1, len(steps) + 1)) and
       {"build", "test"} <= {x["message"] for x in steps} and all(x["progressToken"] == "p" for x in steps), steps)
    r = s.call("evaluate_kernel", task=task, kernel=wrong, target="cuda")
    v = r["structuredContent"]
    ok("a wrong one does not, and the cause comes first", not v["pass"] and v["verdict"] == "not written" and v["cause"] and
       r["content"][0]["text"].startswith("verdict: not written\ncause: "), r)
    ok("a verdict is short", len(r["content"][0]["text"]) < 1500, r)
    evidence = s.ask("resources/read", {"uri": v["evidence"]})["result"]["contents"][0]["text"]
    ok("the evidence has the rest", '"detail"' in evidence and "n - 1" in evidence, evidence)
    r = s.call("evaluate_kernel", task=task, source=source.replace("float const *x", "float cnst *x"), target="cuda")
    v = r["structuredContent"]
    ok("a compile error names its line", v["verdict"] == "compile error" and v["where"].endswith(":8") and "cnst" in v["line"], r)

    # As a task: answered at once, asked about later.
    made = s.ask("tools/call", {"name": "evaluate_kernel", "arguments": {"task": task, "kernel": right, "target": "cuda"}, "task": {"ttl": 600000}})["result"]["task"]
    ok("a task begins", made["status"] == "working" and made["ttl"] == 600000, made)
    r = s.ask("tasks/result", {"taskId": made["taskId"]})["result"]
    ok("its result comes when it is there", r["structuredContent"]["pass"] and
       r["_meta"]["io.modelcontextprotocol/related-task"]["taskId"] == made["taskId"], r)
    ok("it is completed", s.ask("tasks/get", {"taskId": made["taskId"]})["result"]["status"] == "completed")
    ok("it is listed", made["taskId"] in [t["taskId"] for t in s.ask("tasks/list")["result"]["tasks"]])
    ok("what has ended cannot be cancelled", s.ask("tasks/cancel", {"taskId": made["taskId"]})["error"]["code"] == -32602)

    # Cancelled: no answer, and the next request is served.
    ident = s.begin("tools/call", {"name": "start_kernel", "arguments": {"task": root + "/examples/softmax.py", "which": "best"}}, progressToken=7)
    with s.changed:
        s.changed.wait_for(lambda: not s.notices.empty() or str(ident) in s.answers, PATIENCE)
    s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}})
    ok("what is cancelled is no longer worked on", wait_until(lambda: not children(s.process.pid)), children(s.process.pid))
    made = s.ask("tools/call", {"name": "run_task", "arguments": {"task": root + "/examples/softmax.py"}, "task": {}})["result"]["task"]
    r = s.ask("tasks/cancel", {"taskId": made["taskId"]})["result"]
    ok("a task is cancelled", r["status"] == "cancelled" and s.ask("tasks/result", {"taskId": made["taskId"]})["error"]["code"] == -32602, r)
    ok("a cancelled request has no answer", s.ask("ping")["result"] == {} and str(ident) not in s.answers, s.answers)
    ok("the end", s.close() == 0)


def left():
    """A request of 2026-07-28 over HTTP is cancelled by closing its stream."""
    server = Listening(program, env, work)
    with server as address:
        c = Http(address, "2026-07-28")
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": "start_kernel", "arguments": {"task": root + "/examples/softmax.py", "which": "best"},
                          "_meta": {**meta_of("2026-07-28"), "progressToken": 1}}}
        stream = socket.create_connection(("127.0.0.1", c.port))
        body = json.dumps(ask).encode()
        stream.sendall(("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n"
                        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: start_kernel\r\n\r\n"
                        % (c.port, c.token, len(body))).encode() + body)
        seen = b""
        while b"progress" not in seen:
            seen += stream.recv(65536) or b"progress: the stream ended"
        ok("a stream tells the progress of a request", b"notifications/progress" in seen and children(server.pid), seen)
        stream.close()
        ok("closing it ends the work", wait_until(lambda: not children(server.pid)), children(server.pid))
        ok("and nothing else", c.call("evaluate_kernel", task=task, kernel=right, target="cuda")["structuredContent"]["pass"])


def reference_python():
    tools_dir = os.environ.get("CUTEGEN_TOOLS") or os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "cutegen")
    for python in [os.environ.get("CUTEGEN_MCP_PYTHON"), os.path.join(tools_dir, "mcp", "bin", "python")]:
        if python and os.path.exists(python) and subprocess.run([python, "-c", "import mcp.client.client"], capture_output=True).returncode == 0:
            return python
    return None


def reference():
    python = reference_python()
    if not python:
        ok("the reference client finds nothing wrong", True, skip="PyPI's mcp is not installed: setup/setup.sh test")
        return
    r = subprocess.run([python, os.path.join(here, "reference.py"), program, work, right] + ["full"] * full, env=env, text=True, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, timeout=4 * PATIENCE)
    for line in r.stdout.splitlines():
        if line.startswith(("good ", "bad ")):
            ok(line.split(" ", 1)[1].split("\t")[0], line.startswith("good "), line)
    ok("the reference client came to its end", r.returncode == 0, r.stdout)


try:
    tools()
    left()
    reference()
finally:
    subprocess.run([program, "server", "stop"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(work, ignore_errors=True)
print("1..%d" % count)
sys.exit(failed != 0)
