"""client.py - a small client of `cutegen mcp`, with nothing but Python's own library: for tests and benchmarks."""
import http.client
import json
import os
import queue
import subprocess
import threading
import time

REVISIONS = ["2025-06-18", "2025-11-25", "2026-07-28"]
PATIENCE = 3600  # seconds, for a machine that is busy with something else
META = "io.modelcontextprotocol/"


def meta_of(revision):
    """What a request of that revision says of itself."""
    if revision != "2026-07-28":
        return {}
    return {META + "protocolVersion": revision, META + "clientCapabilities": {}, META + "clientInfo": {"name": "test", "version": "1"}}


class Stdio:
    """A server on pipes. Answers come by id; what has none lies in `notices`."""

    def __init__(self, program, revision, env, cwd, *flags):
        self.revision, self.last, self.notices, self.answers = revision, 0, queue.Queue(), {}
        self.changed = threading.Condition()
        self.process = subprocess.Popen([program, "mcp", *flags], env=env, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.ended = False
        threading.Thread(target=self._read, daemon=True).start()
        if revision and revision != "2026-07-28":
            self.hello = self.ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            with self.changed:
                if "method" in message:
                    self.notices.put(message)
                else:
                    self.answers.setdefault(json.dumps(message.get("id")), []).append(message)
                self.changed.notify_all()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def send(self, message):
        self.raw(json.dumps(message).encode() + b"\n")

    def raw(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass

    def begin(self, method, params=None, **more):
        """Sends a request; gives its id."""
        self.last += 1
        params = dict(params or {})
        meta = {**meta_of(self.revision), **more}
        if meta:
            params["_meta"] = meta
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        return self.last

    def wait(self, ident):
        key = json.dumps(ident)
        with self.changed:
            if not self.changed.wait_for(lambda: self.answers.get(key) or self.ended, PATIENCE):
                raise TimeoutError("no answer to %s" % key)
            if not self.answers.get(key):
                raise EOFError("the server ended")
            return self.answers[key].pop(0)

    def ask(self, method, params=None, **more):
        return self.wait(self.begin(method, params, **more))

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close(self):
        """Ends stdin; the exit status."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        return self.process.wait(PATIENCE)


class Http:
    """A client of a server that listens; `address` is what `cutegen mcp --http --json` printed."""

    def __init__(self, address, revision):
        self.port, self.token = int(address["url"].split(":")[2].split("/")[0]), address["token"]
        self.revision, self.session, self.last = revision, None, 0
        if revision != "2026-07-28":
            self.hello = self.ask("initialize", {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method, path, body=b"", headers=None, token=True):
        """Status, headers and body of one request."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if token:
            given["Authorization"] = "Bearer " + self.token
        given.update(headers or {})
        c.request(method, path, body, given)
        r = c.getresponse()
        found = r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
        c.close()
        return found

    def post(self, message, **headers):
        given = {"MCP-Protocol-Version": self.revision}
        if self.session:
            given["Mcp-Session-Id"] = self.session
        if self.revision == "2026-07-28" and "method" in message:
            params = message.get("params", {})
            given["Mcp-Method"] = message["method"]
            name = params.get("name") or params.get("uri")
            if name:
                given["Mcp-Name"] = name
        given.update(headers)
        return self.request("POST", "/mcp", json.dumps(message).encode(), given)

    def ask(self, method, params=None, **more):
        self.last += 1
        params = {**(params or {}), "_meta": {**meta_of(self.revision), **more}}
        status, headers, body = self.post({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        self.session = headers.get("mcp-session-id", self.session)
        if headers.get("content-type") == "text/event-stream":
            self.events = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
            return self.events[-1]
        self.status = status
        return json.loads(body)

    def call(self, tool, **arguments):
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]


def children(pid):
    """Commands that a server runs now."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%d/stat" % int(name)) as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(name)
        except (ValueError, OSError):
            pass  # not a process, or one that has ended
    return found


def wait_until(condition):
    """True once it holds; false when it never did."""
    end = time.monotonic() + PATIENCE
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


class Listening:
    """A server over HTTP, ended with the block."""

    def __init__(self, program, env, cwd, *flags):
        self.command, self.env, self.cwd = [program, "mcp", "--http", "--json", *flags], env, cwd

    def __enter__(self):
        self.process = subprocess.Popen(self.command, env=self.env, cwd=self.cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        self.pid = self.process.pid
        return json.loads(self.process.stdout.readline())

    def __exit__(self, *why):
        self.process.terminate()
        self.status = self.process.wait(PATIENCE)
