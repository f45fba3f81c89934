#!/usr/bin/env python3
"""latency.py CUTEGEN [N] - from an edit to a verdict: `evaluate_kernel` through MCP against `cutegen eval`.

N edits each, in turn, of the same kernel on simt with the warm server. Prints wall and CPU time of both and the difference
of the medians. CPU time is of the asking processes: the MCP server, its commands and their children that were waited for;
builders and oracles of the warm server do the same work either way. On a busy machine the wall time of a judgement says
nothing; so the same is done 10 N times with a command that does next to nothing (`run_status` against `cutegen show`),
where what is left is the server's own part.
"""
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "mcp"))
from client import Stdio  # noqa: E402


def cpu_of(pid):
    """Of a process and of those it has waited for."""
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return sum(int(x) for x in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def children_cpu():
    r = resource.getrusage(resource.RUSAGE_CHILDREN)
    return r.ru_utime + r.ru_stime


class Asker:
    """The same question both ways; `times` has wall and CPU seconds of each."""

    def __init__(self, program, env, work):
        self.program, self.env, self.work = program, env, work
        self.server = Stdio(program, "2025-11-25", env, work)

    def by_mcp(self, tool, arguments):
        begin, cpu = time.monotonic(), cpu_of(self.server.process.pid)
        result = self.server.call(tool, **arguments)
        assert not result["isError"], result
        return result, (time.monotonic() - begin, cpu_of(self.server.process.pid) - cpu)

    def by_command(self, *words):
        begin, cpu = time.monotonic(), children_cpu()
        r = subprocess.run([self.program, *words, "--json"], env=self.env, cwd=self.work, stdout=subprocess.DEVNULL)
        assert r.returncode == 0, words
        return time.monotonic() - begin, children_cpu() - cpu


def show(title, mcp, command):
    print(title)
    for name, all_of in [("MCP", mcp), ("command", command)]:
        print("  %-8s wall %7.1f ms   CPU %6.1f ms   (medians of %d)" % (name, statistics.median(x[0] for x in all_of) * 1e3,
                                                                      statistics.median(x[1] for x in all_of) * 1e3, len(all_of)))
    for k, what in enumerate(["wall", "CPU"]):
        print("  difference of %s: %+.1f ms" % (what, (statistics.median(x[k] for x in mcp) - statistics.median(x[k] for x in command)) * 1e3))


def main():
    program, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    work = tempfile.mkdtemp(prefix="cutegen-latency-")
    env = {**os.environ, "CUTEGEN_HOME": ROOT, "CUTEGEN_DEVICE": "simt", "CUTEGEN_RUNS": work + "/runs", "CUTEGEN_SERVER": "yes",
           "CUTEGEN_TARGET": "cuda"}
    task, kernel = ROOT + "/examples/swish.py", work + "/k.cu"
    with open(ROOT + "/tests/mcp/swish.cu") as f:
        source = f.read()

    def edit(number):
        with open(kernel, "w") as f:
            f.write(source.replace("1.0f", "1.0f + %d * 0.0f" % number))

    asker = Asker(program, env, work)
    mcp, command = [], []
    for i in range(count + 1):  # the first of each warms up
        edit(2 * i)
        result, times = asker.by_mcp("evaluate_kernel", {"task": task, "kernel": kernel})
        assert result["structuredContent"]["pass"], result
        mcp.append(times)
        edit(2 * i + 1)
        command.append(asker.by_command("eval", task, kernel))
    show("from an edit to a verdict", mcp[1:], command[1:])
    mcp, command = [], []
    for _ in range(10 * count):
        mcp.append(asker.by_mcp("run_status", {"run": "last"})[1])
        command.append(asker.by_command("show", "last"))
    show("a command that does next to nothing", mcp, command)
    asker.server.close()
    shutil.rmtree(work, ignore_errors=True)


main()
