#!/usr/bin/env python3
"""latency.py CUTEGEN [N] - from an edit to a verdict: `evaluate_kernel` through MCP against `cutegen eval`.

N edits each, in turn, of the same kernel on simt with the warm server. Prints wall and CPU time of both and the difference
of the medians. CPU time is of the asking processes: the MCP server, its commands and their children that were waited for;
builders and oracles of the warm server do the same work either way.
"""
import os
import resource
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


def main():
    program, count = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10
    work = tempfile.mkdtemp(prefix="cutegen-latency-")
    env = {**os.environ, "CUTEGEN_HOME": ROOT, "CUTEGEN_DEVICE": "simt", "CUTEGEN_RUNS": work + "/runs", "CUTEGEN_SERVER": "yes", "CUTEGEN_TARGET": "cuda"}
    task, kernel = ROOT + "/examples/swish.py", work + "/k.cu"
    with open(ROOT + "/tests/mcp/swish.cu") as f:
        source = f.read()
    server = Stdio(program, "2025-11-25", env, work)
    times = {"mcp": [], "eval": []}
    for i in range(count + 1):
        for way in times:
            with open(kernel, "w") as f:
                f.write(source.replace("1.0f", "1.0f + %d * 0.0f" % (2 * i + (way == "mcp"))))
            begin = time.monotonic()
            if way == "mcp":
                cpu = cpu_of(server.process.pid)
                good = server.call("evaluate_kernel", task=task, kernel=kernel)["structuredContent"]["pass"]
                cpu = cpu_of(server.process.pid) - cpu
            else:
                cpu = children_cpu()
                good = subprocess.run([program, "eval", task, kernel, "--json"], env=env, cwd=work, stdout=subprocess.DEVNULL).returncode == 0
                cpu = children_cpu() - cpu
            assert good, way
            if i:  # the first of each warms up
                times[way].append((time.monotonic() - begin, cpu))
    server.close()
    for way, all_of in times.items():
        print("%-5s wall %7.1f ms   CPU %6.1f ms   (medians of %d)" % (way, statistics.median(x[0] for x in all_of) * 1e3,
                                                                    statistics.median(x[1] for x in all_of) * 1e3, count))
    for k, what in enumerate(["wall", "CPU"]):
        print("difference of %s: %+.1f ms" % (what, (statistics.median(x[k] for x in times["mcp"]) - statistics.median(x[k] for x in times["eval"])) * 1e3))


main()
