#!/usr/bin/env python3
"""A model provider that misbehaves on purpose, over real sockets.

    fault_server.py LOG [CERT KEY]

Prints its port, then serves until its stdin ends. What it does with a request is in the path:

    POST /SCENARIO/ID/chat/completions | responses | messages

SCENARIO is a row of SCENARIOS; ID is any word and makes "the first time" a matter of each test
alone. Every request is appended to LOG as a line of JSON: path, headers, body. With CERT and KEY it
speaks TLS.
"""

import itertools
import json
import socket
import socketserver
import ssl
import sys
import threading
import time
from email.utils import formatdate

REPLY = "Hello from the model.\n```cpp\nint x = 1;\n```\n"
HALF = "```cpp\nint first_line_of_the_kernel = 1;\nint second_line_of_"
REST = "int second_line_of_the_kernel = 2;\n```\n"


def usage(dialect):
    if dialect == "chat":
        return {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
                "prompt_tokens_details": {"cached_tokens": 64}}
    if dialect == "responses":
        return {"input_tokens": 100, "output_tokens": 20, "input_tokens_details": {"cached_tokens": 64}}
    return {"input_tokens": 30, "cache_read_input_tokens": 64, "cache_creation_input_tokens": 6, "output_tokens": 1}


def events(dialect, text, finish="stop", with_usage=True):
    """The payloads of a stream in this dialect, as strings."""
    pieces = [text[i:i + 7] for i in range(0, len(text), 7)]
    if dialect == "chat":
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "fault-1"}
        deltas = [{"role": "assistant", "content": ""}] + [{"content": p} for p in pieces]
        out = [dict(head, choices=[{"index": 0, "delta": d, "finish_reason": None}]) for d in deltas]
        out += [dict(head, choices=[{"index": 0, "delta": {}, "finish_reason": finish}])]
        if with_usage:
            out += [dict(head, choices=[], usage=usage(dialect))]
        return [json.dumps(e) for e in out] + ["[DONE]"]
    if dialect == "responses":
        status = "incomplete" if finish == "length" else "completed"
        head = {"id": "resp_1", "object": "response", "created_at": 1700000000, "model": "fault-1", "output": [],
                "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None}
        message = {"type": "message", "id": "msg_1", "role": "assistant", "status": status,
                   "content": [{"type": "output_text", "text": text, "annotations": []}]}
        end = dict(head, status=status, output=[message])
        if with_usage:
            end["usage"] = dict(usage(dialect), total_tokens=120, output_tokens_details={"reasoning_tokens": 0})
        if finish == "length":
            end["incomplete_details"] = {"reason": "max_output_tokens"}
        place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
        out = [{"type": "response.created", "response": dict(head, status="in_progress")}]
        out += [dict(place, type="response.output_text.delta", delta=p) for p in pieces]
        out += [{"type": "response." + status, "response": end}]
        out = [dict(e, sequence_number=n) for n, e in enumerate(out)]
        return [json.dumps(e) for e in out]
    stop = "max_tokens" if finish == "length" else "end_turn"
    out = [{"type": "message_start", "message": {"model": "fault-1", "usage": usage(dialect) if with_usage else {}}},
           {"type": "ping"},
           {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}]
    out += [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}} for p in pieces]
    out += [{"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 20} if with_usage else {}},
            {"type": "message_stop"}]
    return [json.dumps(e) for e in out]


def whole(dialect, text):
    if dialect == "chat":
        return {"model": "fault-1", "usage": usage(dialect),
                "choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
    if dialect == "responses":
        return {"model": "fault-1", "status": "completed", "usage": usage(dialect),
                "output": [{"type": "reasoning", "summary": []},
                           {"type": "message", "content": [{"type": "output_text", "text": text}]}]}
    return {"type": "message", "model": "fault-1", "stop_reason": "end_turn", "usage": dict(usage(dialect), output_tokens=20),
            "content": [{"type": "text", "text": text}]}


class Exchange:
    """One request and the means to answer it, well or badly."""

    def __init__(self, sock, path, body, headers, count, server):
        self.sock, self.path, self.body, self.headers, self.count, self.server = sock, path, body, headers, count, server
        self.dialect = "chat" if path.endswith("completions") else path.rsplit("/", 1)[-1]

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def head(self, status, kind, extra="", length=None):
        frame = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
        self.send(f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{extra}{frame}\r\n\r\n")

    def chunk(self, text):
        data = text.encode()
        self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def full(self, status, kind, text, extra=""):
        data = text.encode()
        self.head(status, kind, extra, len(data))
        self.send(data)

    def error(self, status, message, extra="", **more):
        self.full(status, "application/json", json.dumps({"error": dict(more, message=message, type="x")}), extra)

    def stream(self, payloads, end=True):
        self.head(200, "text/event-stream; charset=utf-8")
        self.chunk("".join(f"data: {p}\n\n" for p in payloads))
        if end:
            self.chunk_end()

    def wait_for_the_end(self):
        """Says nothing more; returns when the client hangs up."""
        while self.sock.recv(4096):
            pass
        self.close = True

    def chunk_end(self):
        self.send(b"0\r\n\r\n")

    def ok(self, text=REPLY):
        self.stream(events(self.dialect, text))


def first(bad):
    """Badly the first time, well afterwards."""
    return lambda x: bad(x) if x.count == 1 else x.ok()


def stall(x):
    x.stream(events(x.dialect, REPLY)[:3], end=False)
    x.wait_for_the_end()


def cut(x):
    x.stream(events(x.dialect, REPLY)[:4], end=False)
    x.close = True


def cut_clean(x):
    """The stream ends as HTTP wants it, but the provider never said that it is finished."""
    x.stream(events(x.dialect, REPLY)[:4])


def bad_sse(x):
    x.stream(events(x.dialect, REPLY)[:3] + ["{not json"] + events(x.dialect, REPLY)[3:])


def huge(x):
    x.head(200, "text/event-stream")
    text = "x" * 100000
    payload = {"chat": {"choices": [{"delta": {"content": text}}]},
               "responses": {"type": "response.output_text.delta", "delta": text},
               "messages": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}}[x.dialect]
    piece = f"data: {json.dumps(payload)}\n\n"
    sent = 0
    while sent < 200 << 20:
        x.chunk(piece)
        sent += len(piece)
        x.server.huge_sent = sent
    x.chunk_end()


def drip(x):
    """A little now and then, for as long as somebody listens."""
    x.head(200, "text/event-stream")
    start, *rest = events(x.dialect, REPLY * 50)
    x.chunk(f"data: {start}\n\n")
    for p in itertools.cycle(rest[:20]):
        x.chunk(f"data: {p}\n\n")
        time.sleep(0.05)


def comments(x):
    """Everything that is allowed in a stream and rarely seen."""
    x.head(200, "text/event-stream")
    x.send(b"")
    body = "\ufeff: hello\r\n\r\n" + "".join(f"event: e\r\nid: 1\r\ndata: {p}\r\n\r\n: ping\r\n" for p in events(x.dialect, REPLY))
    for i in range(0, len(body), 5):
        x.chunk(body[i:i + 5])
    x.chunk_end()


def continued(x):
    """Cut at the token limit; the continuation repeats the last words and opens the block again."""
    last = json.dumps(x.body)
    if "cut off at the output limit" in last:
        x.stream(events(x.dialect, "```cpp\n" + REST))
    else:
        x.stream(events(x.dialect, HALF, "length"))


def redirect(x):
    x.full(307, "text/plain", "", f"Location: http://127.0.0.1:{x.server.other_port}/ok/{x.path.split('/')[2]}/chat/completions\r\n")


def picky(x):
    """Refuses parameters it does not know, one after the other."""
    for name in ("temperature", "reasoning_effort", "reasoning", "thinking", "stream_options"):
        if name in x.body:
            return x.error(400, f"Unsupported parameter: '{name}' is not supported with this model.")
    if "max_tokens" in x.body and x.dialect == "chat":
        return x.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    return x.ok()


def small_context(x):
    limit = max(x.body.get(n, 0) for n in ("max_tokens", "max_completion_tokens", "max_output_tokens"))
    if limit > 300:
        return x.error(400, f"max_tokens is too large: {limit}. This model's maximum context length is 4096 tokens.")
    return x.ok()


def limit_of(x):
    return max(x.body.get(n, 0) for n in ("max_tokens", "max_completion_tokens", "max_output_tokens"))


def temperature_maximum(x):
    """A complaint with every word that once halved the tokens; these must stay as they are."""
    if "temperature" in x.body:
        return x.error(400, "temperature is too large: the maximum is 1. Lower it; the context is fine.", param="temperature")
    return x.ok() if limit_of(x) == 1000 else x.error(400, f"the tokens were changed to {limit_of(x)}")


def model_limit(x):
    """Anthropic's words: the limit is named, and asked for at once."""
    if limit_of(x) > 700:
        return x.error(400, f"max_tokens: {limit_of(x)} > 700, which is the maximum allowed number of output tokens for fault-1")
    return x.ok() if limit_of(x) == 700 else x.error(400, f"the tokens were changed to {limit_of(x)}")


def tool_call(x):
    """An answer without text that was paid for."""
    if x.dialect == "chat":
        return x.full(200, "application/json", json.dumps(
            {"model": "fault-1", "choices": [{"message": {"content": None}, "finish_reason": "tool_calls"}], "usage": usage("chat")}))
    if x.dialect == "responses":
        return x.full(200, "application/json", json.dumps(
            {"model": "fault-1", "status": "completed", "output": [], "usage": usage("responses")}))
    return x.full(200, "application/json", json.dumps(
        {"model": "fault-1", "content": [], "stop_reason": "tool_use", "usage": dict(usage("messages"), output_tokens=20)}))


def stream_error(x):
    e = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}} if x.dialect == "messages" else \
        {"type": "error", "error": {"type": "server_error", "message": "Overloaded"}}
    x.stream(events(x.dialect, REPLY)[:3] + [json.dumps(e)])


def slow_first_byte(x):
    x.wait_for_the_end()


def leak(x):
    """A provider that repeats the key in its error."""
    key = x.headers.get("authorization", "") + x.headers.get("x-api-key", "")
    x.error(401, f"Incorrect API key provided: {key}")


def leak_reply(x):
    key = x.headers.get("authorization", "").replace("Bearer ", "") + x.headers.get("x-api-key", "")
    x.ok(f"your key is {key}, they say\n")


SCENARIOS = {
    "ok": lambda x: x.ok(),
    "whole": lambda x: x.full(200, "application/json", json.dumps(whole(x.dialect, REPLY))),
    "comments": comments,
    "no-usage": lambda x: x.stream(events(x.dialect, REPLY, with_usage=False)),
    "429-once": first(lambda x: x.error(429, "slow down")),
    "429-after": first(lambda x: x.error(429, "slow down", "Retry-After: 1\r\n")),
    "429-date": first(lambda x: x.error(429, "slow down", f"Retry-After: {formatdate(time.time() + 2, usegmt=True)}\r\n")),
    "429-long": lambda x: x.error(429, "come back tomorrow", "Retry-After: 86400\r\n"),
    "429-forever": lambda x: x.error(429, "slow down"),
    "429-quota": lambda x: x.error(429, "You exceeded your current quota"),
    "500-once": first(lambda x: x.error(500, "oops")),
    "503-forever": lambda x: x.error(503, "overloaded"),
    "stall-once": first(stall),
    "stall": stall,
    "silent": slow_first_byte,
    "cut-once": first(cut),
    "cut": cut,
    "cut-clean": cut_clean,
    "reset": lambda x: setattr(x, "close", True),
    "bad-sse-once": first(bad_sse),
    "bad-sse": bad_sse,
    "html": lambda x: x.full(200, "text/html", "<html><body>Welcome to the captive portal</body></html>"),
    "html-502": lambda x: x.full(502, "text/html", "<html><body>Bad gateway</body></html>"),
    "empty-once": first(lambda x: x.stream(events(x.dialect, ""))),
    "empty": lambda x: x.stream(events(x.dialect, "")),
    "nothing": lambda x: x.full(200, "application/json", ""),
    "wrong-json": lambda x: x.full(200, "application/json", '{"choices": ['),
    "other-json": lambda x: x.full(200, "application/json", '{"hello": "world"}'),
    "continued": continued,
    "length-forever": lambda x: x.stream(events(x.dialect, HALF, "length")),
    "reasoning": lambda x: x.ok() if x.count > 1 else x.stream(events(x.dialect, "", "length")),
    "huge": huge,
    "drip": drip,
    "redirect": redirect,
    "picky": picky,
    "small-context": small_context,
    "temperature-maximum": temperature_maximum,
    "model-limit": model_limit,
    "nothing-to-change": lambda x: x.error(400, "the maximum number of images is too large for this context"),
    "tool-call-once": first(tool_call),
    "stream-error-once": first(stream_error),
    "stream-error": stream_error,
    "404": lambda x: x.error(404, "The model does not exist"),
    "leak": leak,
    "leak-reply": leak_reply,
}


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = self.request.makefile("rb")
        try:
            while self.one(reader):
                pass
        except (ConnectionError, ssl.SSLError, ValueError, OSError):
            pass

    def one(self, reader):
        line = reader.readline().decode("latin-1").split()
        if len(line) < 2:
            return False
        headers = {}
        while True:
            h = reader.readline().decode("latin-1").strip()
            if not h:
                break
            name, _, value = h.partition(":")
            headers[name.lower()] = value.strip()
        body = json.loads(reader.read(int(headers.get("content-length", 0))) or b"{}")
        path = line[1]
        if path.startswith("http://"):  # as a proxy
            path = "/" + path.split("/", 3)[3]
        key = "/".join(path.split("/")[:3])
        with self.server.lock:
            self.server.counts[key] = count = self.server.counts.get(key, 0) + 1
            if self.server.log:
                self.server.log.write(json.dumps({"port": self.server.server_address[1], "path": line[1], "headers": headers, "body": body}) + "\n")
                self.server.log.flush()
        x = Exchange(self.request, path, body, headers, count, self.server)
        x.close = False
        SCENARIOS[path.split("/")[1]](x)
        return not x.close


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 256

    def __init__(self, log, context=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock, self.counts, self.log, self.context, self.huge_sent, self.other_port = threading.Lock(), {}, log, context, 0, 0

    def get_request(self):
        sock, address = super().get_request()
        if self.context:
            sock = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return sock, address

    def handle_error(self, request, client_address):
        pass


def main():
    log = open(sys.argv[1], "a") if sys.argv[1] != "-" else None
    context = None
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
    server, other = Server(log, context), Server(log)
    server.other_port = other.server_address[1]
    for s in (server, other):
        threading.Thread(target=s.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
