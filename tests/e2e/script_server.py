"""script_server.py FOLDER LOG - a chat-completions server that answers from a script, over real sockets.

The n-th request gets the n-th file of FOLDER (in order of their names), streamed in small pieces. A file whose name ends
in .cut.md ends with the finish reason "length" and no usage beyond it, as a reply cut at its token limit does. After the last
file every request is answered with status 503. LOG gets one JSON line per request: its number, messages and whether the key came.
The port is printed; the server ends when its stdin does.
"""
import http.server
import json
import os
import sys
import threading

folder, log_path = sys.argv[1:3]
files = sorted(os.listdir(folder))
lock = threading.Lock()
state = {"next": 0}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def chunk(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def event(self, obj):
        self.chunk("data: " + (obj if isinstance(obj, str) else json.dumps(obj)) + "\n\n")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with lock:
            n = state["next"]
            state["next"] += 1
            with open(log_path, "a") as log:
                log.write(json.dumps({"number": n, "messages": body["messages"],
                                      "authorized": self.headers.get("Authorization", "").startswith("Bearer ")}) + "\n")
        if n >= len(files):
            self.send_response(503)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        text = open(os.path.join(folder, files[n])).read()
        cut = files[n].endswith(".cut.md")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(0, len(text), 97):
            self.event({"id": "x", "model": "scripted-1", "choices": [{"index": 0, "delta": {"content": text[i:i + 97]}}]})
        self.event({"id": "x", "model": "scripted-1",
                    "choices": [{"index": 0, "delta": {}, "finish_reason": "length" if cut else "stop"}]})
        prompt = sum(len(m["content"]) for m in body["messages"]) // 4
        self.event({"id": "x", "model": "scripted-1", "choices": [],
                    "usage": {"prompt_tokens": prompt, "completion_tokens": len(text) // 4,
                              "prompt_tokens_details": {"cached_tokens": prompt // 2 if n else 0}}})
        self.event("[DONE]")
        self.chunk("")
        self.wfile.flush()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
