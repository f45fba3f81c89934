#!/usr/bin/env python3
"""A ModelNew that compiles is built in a process of its own, then judged without compilers. TAP.

    tests/cheats/extensions_test.py CUTEGEN

Needs a PyTorch with its C++ headers, ninja and a C++ compiler; skipped with the reason where one is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TASK = HERE / "tasks" / "gate.py"
DEADLINE_S = 3600

SOURCE = '''
#include <cmath>
torch::Tensor swish(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>();
    float *out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++)
        out[i] = %s;
    return y;
}
'''
RIGHT, WRONG = "in[i] / (1.0f + std::exp(-in[i]))", "in[i]"

AT_IMPORT = '''import torch
from torch.utils.cpp_extension import load_inline
own = load_inline(name="own_swish", cpp_sources={source!r}, functions=["swish"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return own.swish(x)
'''
# Built by the first call, whose inputs are invented in the process that builds; a library for torch.ops.
IN_FORWARD = '''import torch
from torch.utils import cpp_extension
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "own"):
            self.own = cpp_extension.load_inline(name="late_swish", cpp_sources={source!r}, functions=["swish"])
        return self.own.swish(x)
'''
# Compiles something else every time: the guest does not find it.
NEVER_THE_SAME = '''import os, torch
from torch.utils.cpp_extension import load_inline
own = load_inline(name="own_swish", cpp_sources={source!r} + f"// {{os.getpid()}}", functions=["swish"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return own.swish(x)
'''
# What its first forward left for the judged ones was made of invented inputs, and it cannot leave anything else.
KEEPS_A_RESULT = '''import os, torch
from torch.utils.cpp_extension import load_inline
own = load_inline(name="own_swish", cpp_sources={source!r}, functions=["swish"])
kept = os.path.join(os.path.dirname(os.environ["TORCH_EXTENSIONS_DIR"]), "kept.pt")
class ModelNew(torch.nn.Module):
    def forward(self, x):
        if os.path.exists(kept):
            return torch.load(kept)
        torch.save(x * torch.sigmoid(x), kept)
        return own.swish(x)
'''
# As Triton: a folder of its cache is made before any program is started, by code that was imported long before. Its name
# depends on what a program said that was asked with the environment of the process.
MAKES_A_FOLDER = '''import ctypes, math, os, subprocess, torch
def key():
    try:
        return subprocess.check_output(["/bin/echo", "key"], text=True, env=dict(os.environ, LC_ALL="C", PROCESS=str(os.getpid()))).strip()
    except OSError:
        return "another"
class ModelNew(torch.nn.Module):
    def forward(self, x):
        os.makedirs(os.path.join(os.environ["TRITON_CACHE_DIR"], key()), exist_ok=True)  # {source[0]!r}
        y = torch.empty_like(x)
        values = (ctypes.c_float * x.numel()).from_address(x.data_ptr())
        (ctypes.c_float * x.numel()).from_address(y.data_ptr())[:] = [v * (0.5 + 0.5 * math.tanh(v / 2)) for v in values]
        return y
'''
DOES_NOT_COMPILE = "this is no C++"

CASES = [
    ("built at import", AT_IMPORT, RIGHT, "pass, unattested", ""),
    ("built in forward", IN_FORWARD, RIGHT, "pass, unattested", ""),
    ("a cache made in forward", MAKES_A_FOLDER, RIGHT, "pass, unattested", ""),
    ("built, and wrong", AT_IMPORT, WRONG, "wrong values", ""),
    ("does not compile", AT_IMPORT, DOES_NOT_COMPILE, "compile error", "error:"),
    ("another source every time", NEVER_THE_SAME, RIGHT, "compile error", "was not built"),
    ("keeps what it computed while it was built", KEEPS_A_RESULT, RIGHT, "wrong values", ""),
]


def python_here() -> str:
    """The Python that cutegen takes."""
    tools = os.environ.get("CUTEGEN_TOOLS") or os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "cutegen")
    own = os.path.join(tools, "venv", "bin", "python3")
    return os.environ.get("CUTEGEN_PYTHON") or (own if os.path.exists(own) else "python3")


def why_not(python: str) -> str:
    """Why extensions cannot be built here; "" if they can."""
    code = "import os, torch; from torch.utils import cpp_extension as c; c.verify_ninja_availability(); print(os.path.exists(os.path.join(c.include_paths()[0], 'torch', 'extension.h')))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["torch does not start"])[-1]
    return "" if done.stdout.strip() == "True" else "needs torch 2.4 or newer: this one comes without its C++ headers"


def judge(cutegen: str, folder: Path, text: str) -> dict[str, object]:
    path = folder / "candidate.py"
    path.write_text(text)
    done = subprocess.run([cutegen, "eval", str(TASK), str(path), "--device", "simt", "--json"], capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    try:
        said = json.loads(done.stdout)
    except ValueError:
        said = {"verdict": "(no answer)", "detail": done.stdout + done.stderr}
    return dict(said)


def main() -> int:
    cutegen, wanted = sys.argv[1], sys.argv[2:]
    reason = why_not(python_here())
    if reason:
        print(f"1..0 # SKIP {reason}")
        return 0
    failed = 0
    cases = [c for c in CASES if not wanted or c[0] in wanted]
    print(f"1..{len(cases)}")
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(CUTEGEN_RUNS=f"{work}/runs", CUTEGEN_SERVER="no")
        for number, (name, text, body, verdict, words) in enumerate(cases, 1):
            source = SOURCE % body if body != DOES_NOT_COMPILE else body
            said = judge(cutegen, Path(work), text.format(source=source))
            good = said.get("verdict") == verdict and words in json.dumps(said)
            failed += not good
            print(f"{'ok' if good else 'not ok'} {number} - {name}: {said.get('verdict')}", flush=True)
            if not good:
                print(f"# wanted {verdict} {words!r}: {json.dumps(said)[:1500]}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
