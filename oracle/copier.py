# SPDX-License-Identifier: Apache-2.0
"""The copier: a process that has imported PyTorch and every module of ours, and makes oracles as copies of itself.

    python -I -B -u copier.py CUTEGEN-COPIER.SO FD

Importing takes one to three seconds of CPU time, a copy 20 ms. The warm server starts one (server/copiers.h) and asks at FD; the
module in C forks, limits and confines each copy (confine/copier.h). The copier loads no task.

A copy is what a new process would be: it has its own random numbers, environment, signals and streams. When any module of ours, PyTorch or
a list of installed packages has changed, the copier ends, so that no oracle is made of two versions.
"""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import json
import os
import random
import select
import signal
import sys
from pathlib import Path
from typing import Any

REAP_S = 1.0
BORN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)


class Hooks(ctypes.Structure):
    _fields_ = [
        ("before", ctypes.c_void_p),
        ("parent", ctypes.c_void_p),
        ("child", ctypes.c_void_p),
        ("born", BORN),
    ]


def load_main() -> Any:
    spec = importlib.util.spec_from_file_location("cutegen_oracle_main", Path(__file__).resolve().parent / "main.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def installed() -> list[tuple[str, int]]:
    """Changes with every package that is installed or removed, and with PyTorch itself."""
    places = {path for path in sys.path if os.path.isdir(path)}
    for name in ("torch", "numpy"):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file:
            places |= {file, os.path.join(os.path.dirname(file), "version.py"), os.path.dirname(os.path.dirname(file))}
    return [(place, os.stat(place).st_mtime_ns) for place in sorted(places) if os.path.exists(place)]


def begin_anew(words: dict[str, Any]) -> None:
    """What a new process has of its own."""
    sys.argv = words["argv"][4:]  # after the interpreter and its flags
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in words["env"] if "=" in entry)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def hooks(main: Any, sources: Any) -> Hooks:
    def born(said: bytes) -> int:
        try:
            begin_anew(json.loads(said))
            return int(main.main(sources))
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
            return 1
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()

    python = ctypes.pythonapi
    return Hooks(
        *(
            ctypes.cast(call, ctypes.c_void_p)
            for call in (python.PyOS_BeforeFork, python.PyOS_AfterFork_Parent, python.PyOS_AfterFork_Child)
        ),
        BORN(born),
    )


def reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> int:
    library, fd = ctypes.PyDLL(sys.argv[1]), int(sys.argv[2])
    program = load_main()
    program.load_package()
    program.settle()
    from oracle.sources import Sources, stamps

    sources = Sources()
    packages = installed()
    calls = hooks(program, sources)
    gc.collect()
    gc.freeze()  # a copy's collector does not touch, and so not copy, what is here
    os.write(fd, b"\n")  # ready
    while True:
        asked = select.select([fd], [], [], REAP_S)[0]
        reap()
        if asked and (stamps() != sources.first or installed() != packages):
            return 0
        if asked and library.cutegen_copier_serve(fd, ctypes.byref(calls)) <= 0:
            return 0


if __name__ == "__main__":
    sys.exit(main())
