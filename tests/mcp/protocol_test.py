"""protocol_test.py CUTEGEN - the MCP server as a stranger meets it: three revisions, two transports, broken messages.

No kernel is judged here. Prints TAP.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading

import client
from client import META, REVISIONS, Http, Listening, Stdio

program = os.path.abspath(sys.argv[1])
root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
work = tempfile.mkdtemp(prefix="cutegen-mcp-test-")
env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
env.update(XDG_CONFIG_HOME=work + "/config", CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=work + "/runs", CUTEGEN_HOME=root)
TOOLS = ["describe_task", "evaluate_kernel", "compare_kernels", "profile_kernel", "start_kernel", "search_cute", "run_task", "run_status",
         "export_kernel"]
count = failed = 0


def ok(sentence, good, why=""):
    global count, failed
    count += 1
    failed += not good
    print("%s %d - %s" % ("ok" if good else "not ok", count, sentence), flush=True)
    if not good:
        print("#", str(why)[-1500:].replace("\n", "\n# "), flush=True)


def code(answer):
    return answer.get("error", {}).get("code")


# ---- what every revision and both transports have ------------------------------------------

def common(server, revision, how):
    what = "%s over %s: " % (revision, how)
    tools = server.ask("tools/list")["result"]
    ok(what + "the nine tools, each with schemas", [t["name"] for t in tools["tools"]] == TOOLS and
       all(t["inputSchema"]["type"] == t["outputSchema"]["type"] == "object" for t in tools["tools"]), tools)
    ok(what + "task support stands where the revision has tasks",
       all(("execution" in t) == (revision == "2025-11-25") for t in tools["tools"]), tools)
    modern = revision == "2026-07-28"
    ok(what + "results say what they are where they must",
       (tools.get("resultType"), tools.get("cacheScope")) == (("complete", "private") if modern else (None, None)), tools)
    guide = server.ask("resources/read", {"uri": "cutegen://guide/abi"})["result"]["contents"][0]
    ok(what + "the ABI can be read", "CUTEGEN_PLAN" in guide["text"], guide)
    listed = server.ask("resources/list")["result"]["resources"]
    ok(what + "guides and runs are listed", {"cutegen://guide/cute", "cutegen://runs"} <= {r["uri"] for r in listed}, listed)
    ok(what + "templates are listed", len(server.ask("resources/templates/list")["result"]["resourceTemplates"]) == 4)
    ok(what + "prompts are listed", [p["name"] for p in server.ask("prompts/list")["result"]["prompts"]] == ["synthesis", "repair"])
    ok(what + "a resource that is not there", code(server.ask("resources/read", {"uri": "cutegen://guide/../LICENSE"})) ==
       (-32602 if modern else -32002))
    ok(what + "a tool that is not there", code(server.ask("tools/call", {"name": "rm"})) == -32602)
    ok(what + "a method that is not there", code(server.ask("sampling/createMessage")) == -32601)
    wrong = server.call("search_cute", query=3)
    ok(what + "wrong arguments are the tool's error, for the model to read", wrong["isError"] and "query" in wrong["content"][0]["text"], wrong)
    wrong = server.call("evaluate_kernel", task="/nowhere/task.py", kernel="k.cu")
    ok(what + "a file that is not there", wrong["isError"] and "/nowhere/task.py" in wrong["content"][0]["text"], wrong)
    wrong = server.call("run_status", run="--help")
    ok(what + "an id is not a flag", wrong["isError"] and "not the id" in wrong["content"][0]["text"], wrong)


def stdio_revisions():
    for revision in REVISIONS:
        s = Stdio(program, revision, env, work)
        if revision == "2026-07-28":
            found = s.ask("server/discover")["result"]
            ok("discover names every revision", found["supportedVersions"] == REVISIONS[::-1] and found["resultType"] == "complete", found)
            ok("a revision nobody speaks", code(s.ask("tools/list", None, **{META + "protocolVersion": "1900-01-01"})) == -32022)
            s.send({"jsonrpc": "2.0", "id": "x", "method": "tools/list"})
            ok("a request that does not say its revision", code(s.wait("x")) == -32602)
            ident = s.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            told = s.notices.get(timeout=client.PATIENCE)
            ok("a subscription is acknowledged, with nothing that never comes",
               told["method"] == "notifications/subscriptions/acknowledged" and told["params"]["notifications"] == {} and
               told["params"]["_meta"][META + "subscriptionId"] == ident, told)
            s.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}})
        else:
            ok("%s is agreed on" % revision, s.hello["result"]["protocolVersion"] == revision, s.hello)
            ok("%s: ping" % revision, s.ask("ping")["result"] == {})
        common(s, revision, "stdio")
        ok("%s: the end of stdin ends the server" % revision, s.close() == 0)
    s = Stdio(program, "2024-11-05", env, work)
    ok("an older revision is offered the newest that begins the same way", s.hello["result"]["protocolVersion"] == "2025-11-25", s.hello)
    s.close()


# ---- broken messages ---------------------------------------------------------------------------

def broken(r):
    """One message that no client should send."""
    valid = json.dumps({"jsonrpc": "2.0", "id": r.randrange(10**6), "method": r.choice(["tools/list", "tools/call", "resources/read", "ping"]),
                        "params": {"name": r.choice(TOOLS), "arguments": {"query": "copy", "task": "t.py"}, "uri": "cutegen://runs"}})
    kind = r.randrange(9)
    if kind == 0:
        return bytes(r.randrange(256) for _ in range(r.randrange(200))).replace(b"\n", b" ")
    if kind == 1:
        at = r.randrange(len(valid))
        return (valid[:at] + r.choice("{}[]\",:x\\") + valid[at + 1:]).encode()
    if kind == 2:
        return valid[:r.randrange(len(valid))].encode()
    if kind == 3:
        return r.choice([b"[", b'{"a":']) * r.choice([10, 100, 100000])
    if kind == 4:
        return json.dumps({"jsonrpc": r.choice(["2.0", "1.0", 2]), "id": r.choice([None, True, 1.5, [], {}, -1, "i"]),
                           "method": r.choice([None, 3, [], "", "tools/list"]), "params": r.choice([None, [], 3, "x", {}])}).encode()
    if kind == 5:
        return json.dumps([json.loads(valid)] * 3).encode()
    if kind == 6:
        return json.dumps({"jsonrpc": "2.0", "id": 5, "result": {}, "error": {}}).encode()
    if kind == 7:
        return json.dumps({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": r.choice([None, 7, "x", {}])}}).encode()
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": r.choice(TOOLS), "arguments": r.choice([None, [], {"run": "x" * 5000}, {"query": ""}, {"set": {"N": "1"}}])}}).encode()


def fuzz(messages, seed):
    r = random.Random(seed)
    s = Stdio(program, "2025-11-25", env, work)
    for _ in range(messages):
        s.raw(broken(r) + b"\n")
    s.raw(b'{"jsonrpc":"2.0","id":"huge","method":"ping","params":{"x":"' + b"x" * (9 << 20) + b'"}}\n')
    s.raw(b'{"jsonrpc":"2.0","id":"early","method":"tasks/result","params":{"taskId":"not yet"}}\n')
    ok("%d broken messages (seed %d), one of 9 MiB, and it still answers" % (messages, seed), s.ask("ping").get("result") == {})
    ok("what was answered has an id or says null", all(json.loads(k) is None or isinstance(json.loads(k), (int, str)) for k in s.answers), list(s.answers)[:5])
    s.raw(b'{"jsonrpc":"2.0","id":9,"method":"tools/li')
    ok("the end in the middle of a message", s.close() == 0)
    s = Stdio(program, "2025-11-25", env, work)
    for _ in range(20):
        s.begin("resources/list")
    ok("the end in the middle of the work", s.close() == 0)
    s = Stdio(program, None, env, work)
    s.revision = None
    ok("a request before initialize", code(s.ask("tools/list")) == -32602)
    ok("and ping all the same", s.ask("ping").get("result") == {})
    first = s.begin("ping")
    s.wait(first)
    s.close()


def deaf():
    """A client that sends and never reads: its pipe fills up, and the end of stdin still ends the server."""
    p = subprocess.Popen([program, "mcp"], env=env, cwd=work, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    p.stdin.write(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n')
    p.stdin.write(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"tools/list"}\n' % (i + 1) for i in range(500)))
    p.stdin.close()
    ok("a client that never reads does not hold the server", p.wait(client.PATIENCE) == 0)
    p.stdout.close()


# ---- over HTTP ------------------------------------------------------------------------------------

def http_transport():
    with Listening(program, env, work) as address:
        for revision in REVISIONS:
            c = Http(address, revision)
            if revision != "2026-07-28":
                ok("%s over HTTP: a session" % revision, len(c.session or "") == 64)
            common(c, revision, "HTTP")
        modern = Http(address, "2026-07-28")
        ask = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": client.meta_of("2026-07-28")}}
        ok("no token", modern.request("POST", "/mcp", b"{}", token=False)[0] == 401)
        ok("a wrong token", modern.request("POST", "/mcp", b"{}", {"Authorization": "Bearer " + "0" * 64})[0] == 401)
        ok("another Host", modern.request("POST", "/mcp", b"{}", {"Host": "evil.example:%d" % modern.port})[0] == 403)
        ok("another Origin", modern.request("POST", "/mcp", b"{}", {"Origin": "http://evil.example"})[0] == 403)
        ok("GET has nothing to say", modern.request("GET", "/mcp")[0] == 405)
        ok("another path", modern.request("POST", "/", b"{}")[0] == 404)
        ok("a body that is not JSON", modern.request("POST", "/mcp", b"{")[0] == 400)
        ok("a body of 9 MiB", modern.request("POST", "/mcp", b" " * (9 << 20))[0] == 413)
        ok("a notice is accepted", modern.post({"jsonrpc": "2.0", "method": "notifications/initialized"})[0] == 202)
        for name, value in [("Mcp-Method", "prompts/list"), ("MCP-Protocol-Version", "2025-11-25")]:
            status, _, body = modern.post(ask, **{name: value})
            ok("a header that differs from the body: " + name, status == 400 and code(json.loads(body)) == -32020, body)
        status, _, body = modern.post({**ask, "method": "ping"})
        ok("a method of another revision", status == 404 and code(json.loads(body)) == -32601, body)
        legacy = Http(address, "2025-11-25")
        ok("an unknown session", legacy.post(ask, **{"Mcp-Session-Id": "0" * 64})[0] == 404)
        ok("a session ends", legacy.request("DELETE", "/mcp", headers={"Mcp-Session-Id": legacy.session})[0] == 200 and
           legacy.post(ask)[0] == 404)
        ten_clients(address)


def ten_clients(address):
    good = []

    def one(number):
        c = Http(address, REVISIONS[number % 3])
        for _ in range(3):
            c.ask("tools/list")["result"]["tools"]
            c.ask("resources/read", {"uri": "cutegen://guide/cute"})["result"]["contents"]
            c.call("run_status", run="last")["content"]
        good.append(number)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(10)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    ok("ten clients at once", sorted(good) == list(range(10)), good)


# ---- what files a tool may name -----------------------------------------------------------------------

def files():
    inside = work + "/inside"
    os.mkdir(inside)
    os.symlink("/etc/passwd", inside + "/link.py")
    s = Stdio(program, "2025-11-25", env, work, "--root", inside)
    for path in ["/etc/passwd", inside + "/../runs", inside + "/link.py", work]:
        r = s.call("describe_task", task=path)
        ok("below the root only: not " + path.replace(work, "WORK"), r["isError"] and "not below" in r["content"][0]["text"], r)
    for path in ["/tmp/elsewhere", inside + "/new/../../elsewhere", inside + "/../elsewhere"]:
        r = s.call("export_kernel", run="last", output=path)
        ok("nothing is written to " + path.replace(work, "WORK"), r["isError"] and "not below" in r["content"][0]["text"], r)
    r = s.call("export_kernel", run="last", output=inside + "/new/folder")
    ok("a new folder below it may be written", r["isError"] and "not below" not in r["content"][0]["text"], r)
    s.close()


try:
    stdio_revisions()
    fuzz(int(sys.argv[2]) if len(sys.argv) > 2 else 300, int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    deaf()
    http_transport()
    files()
finally:
    shutil.rmtree(work, ignore_errors=True)
print("1..%d" % count)
sys.exit(failed != 0)
