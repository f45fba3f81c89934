# SPDX-License-Identifier: Apache-2.0
"""One export used by many at once: loaded as copies by threads, called by threads, after a fork; one line per fact.

    together.py FOLDER

On a GPU each thread has a stream of its own, and what is left to a child of fork is an error, not a wrong result.
"""
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings

import torch

sys.dont_write_bytecode = True
warnings.simplefilter("ignore")
folder = os.path.abspath(sys.argv[1])
with open(os.path.join(folder, "launches.json")) as file:
    GPU = json.load(file)["device"]["kind"] == "cuda"
THREADS = 8
if not GPU:
    torch.set_num_threads(1)  # threads of PyTorch's own are gone in a child of fork, and a copy of a tensor waits for them


def at_once(work):
    """Runs work(k) in threads that begin together; what each returned, or its error."""
    found, barrier = [None] * THREADS, threading.Barrier(THREADS)

    def one(k):
        try:
            barrier.wait()
            found[k] = work(k)
        except Exception as err:
            found[k] = f"{type(err).__name__}: {' '.join(str(err).split())[:300]}"

    threads = [threading.Thread(target=one, args=(k,)) for k in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


def made(m):
    torch.manual_seed(1)
    kinds = [kind(*m.get_init_inputs()) for kind in (m.Model, m.ModelNew)]
    kinds[1].load_state_dict(kinds[0].state_dict())
    inputs = [t.cuda() if GPU and isinstance(t, torch.Tensor) else t for t in m.get_inputs()]
    return [kind.cuda() if GPU else kind for kind in kinds], inputs


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [value] if isinstance(value, torch.Tensor) else [t for v in value for t in flat(v)]


def close(got, want):
    pairs = zip(flat(got), flat(want))
    return all(g.shape == w.shape and (g.double() - w.double()).abs().max() <= 1e-2 * w.double().abs().max() + 1e-6 for g, w in pairs)


def scaled(inputs, k):
    return [t * (1 + k / 8) if isinstance(t, torch.Tensor) and t.is_floating_point() else t for t in inputs]


def child_of_fork(act):
    """What a child prints, or that it hung or died."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(15 if GPU else 120)
        try:
            said = act()
        except Exception as err:
            said = f"{type(err).__name__}: {' '.join(str(err).split())[:200]}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 4000).decode()
    os.close(read)
    _, code = os.waitpid(child, 0)
    return said or f"ended with {code}"


def right(m, k=0):
    (model, new), inputs = made(m)
    inputs = scaled(inputs, k)
    with torch.no_grad():
        return "right" if close(new(*inputs), model(*inputs)) else "WRONG"


work = tempfile.mkdtemp()
sys.path.insert(0, work)
for k in range(THREADS):
    shutil.copytree(folder, os.path.join(work, f"copy{k}"), ignore=shutil.ignore_patterns("__pycache__"))
copies = at_once(lambda k: importlib.import_module(f"copy{k}"))
print("copies", " ".join(sorted({m if isinstance(m, str) else "loaded" for m in copies})))
copies = [m for m in copies if not isinstance(m, str)]
if not copies:
    sys.exit(1)
print("operators", len({m.operator for m in copies}))
m = copies[0]
print("child-before-first-call", child_of_fork(lambda: right(m)))
print("threads-first-call", " ".join(sorted(set(at_once(lambda k: right(copies[k % len(copies)]))))))

(model, new), inputs = made(m)
with torch.no_grad():
    wants = [model(*scaled(inputs, k)) for k in range(THREADS)]


def many_calls(k):
    side, bad, mine = torch.cuda.Stream() if GPU else None, 0, scaled(inputs, k)
    if GPU:
        torch.cuda.synchronize()
    for _ in range(50 if GPU else 1):
        with torch.no_grad():
            if GPU:
                with torch.cuda.stream(side):
                    got = new(*mine)
                    side.synchronize()
            else:
                got = new(*mine)
            bad += not close(got, wants[k])
    return f"{bad} wrong"


print("threads-own-numbers", " ".join(sorted(set(at_once(many_calls)))))
print("child-after-calls", child_of_fork(lambda: "right" if close(new(*inputs), wants[0]) else "WRONG"))
print("parent-after-fork", right(m))
shutil.rmtree(work)
