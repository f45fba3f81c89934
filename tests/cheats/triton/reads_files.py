# triton: looks for the task, keys, other processes and the network when imported
# verdict: pass

import glob
import os
import socket

import triton
import triton.language as tl

FOUND = [p for p in glob.glob("/proc/[0-9]*/environ") if os.access(p, os.R_OK) and f"/{os.getpid()}/" not in p]
FOUND += [n for n in os.environ if n.endswith(("_KEY", "_TOKEN", "_SECRET")) or n.startswith("CUTEGEN")]
for place in ("/root", "/home", "/etc/shadow", "/etc/passwd", "/var/tmp", os.path.dirname(os.path.dirname(__file__))):
    try:
        FOUND += [place] if os.path.isdir(place) and os.listdir(place) else [open(place).name]
    except OSError:
        pass
try:
    socket.create_connection(("192.0.2.1", 80), timeout=1)
    FOUND.append("network")
except OSError:
    pass
try:
    os.fork()
    FOUND.append("fork")
except OSError:
    pass
if FOUND:
    raise RuntimeError(f"found {FOUND}")


@triton.jit
def gate(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(y + i, v * tl.sigmoid(v), mask=i < n)


def plan(p):
    (x,), (y,) = p.inputs, p.outputs
    n = x.numel()
    gate[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
