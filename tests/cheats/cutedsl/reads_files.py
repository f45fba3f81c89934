# cutedsl: looks for the task, keys, other processes and the network when imported
# verdict: pass

import glob
import os
import socket

import cutlass.cute as cute

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


@cute.kernel
def gate_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 256 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        v = x[i]
        y[i] = v / (1.0 + cute.math.exp(-v))


@cute.jit
def gate(x: cute.Tensor, y: cute.Tensor):
    flat = cute.make_layout(cute.size(x))
    gX = cute.make_tensor(x.iterator, flat)  # (n)
    gY = cute.make_tensor(y.iterator, flat)  # (n)
    gate_kernel(gX, gY).launch(grid=(cute.ceil_div(cute.size(x), 256), 1, 1), block=(256, 1, 1))


def plan(p):
    gate(p.inputs[0], p.outputs[0])
