# SPDX-License-Identifier: Apache-2.0
"""program.py - the cutegen program and its JSON (docs/commands.md). Everything else here is thin over these calls.

The program is found in this order: $CUTEGEN_PROGRAM, the tree inside the wheel, the build of a checkout, the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import Any, Callable

Json = dict[str, Any]
Event = Callable[[Json], None]
HERE = os.path.dirname(os.path.abspath(__file__))
ANSWERED = (0, 1, 4)  # done, judged and refused, out of budget: each has a result (docs/commands.md, Exit codes)


class CutegenError(RuntimeError):
    """Nothing could be judged: wrong use, or the machine lacks something. `kind`, `hint` and `exit` are the program's."""

    def __init__(self, text: str, hint: str = "", kind: str = "machine", code: int = 3) -> None:
        super().__init__(f"{text}\n  {hint}" if hint else text)
        self.text, self.hint, self.kind, self.exit = text, hint, kind, code


def program() -> str:
    """The path of the cutegen program."""
    named = os.environ.get("CUTEGEN_PROGRAM")
    if named:
        return named
    root = os.path.dirname(os.path.dirname(HERE))
    for path in (os.path.join(HERE, "_tree", "bin", "cutegen"), os.path.join(root, "build", "release", "src", "cutegen")):
        if os.access(path, os.X_OK):
            return path
    found = shutil.which("cutegen")
    if not found:
        raise CutegenError("there is no cutegen program", "install the wheel of `make wheel`, or run make in a checkout; CUTEGEN_PROGRAM names one")
    return found


def environment() -> dict[str, str]:
    """This process's environment; the program's default Python is the one that runs here (it has the same torch)."""
    return {**os.environ, "CUTEGEN_STARTED_BY": sys.executable}


def flags(settings: Json) -> list[str]:
    """`depth=3, scale=False, set=["N=4"]` as flags: --depth 3 --no-scale --set N=4."""
    made: list[str] = []
    for name, value in settings.items():
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            made.append(flag if value else "--no-" + flag[2:])
            continue
        for item in value if isinstance(value, (list, tuple)) else [value]:
            made += [flag, str(item)]
    return made


def _failure(last: Json, code: int, said: str) -> CutegenError:
    error = last.get("error")
    if isinstance(error, dict):
        return CutegenError(error["text"], error.get("hint") or "", error["kind"], code)
    return CutegenError(f"cutegen ended with {code}", said.strip()[-2000:])


def call(arguments: list[str], on_event: Event | None = None) -> Json:
    """Runs a command with --json; its last object. Earlier lines go to `on_event`."""
    command = [program(), *arguments, "--json"]
    last: Json = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment()) as child:
        assert child.stdout is not None and child.stderr is not None
        with _Drain(child.stderr) as drain:
            try:
                for line in child.stdout:
                    last = json.loads(line)
                    if on_event is not None:
                        on_event(last)
            except KeyboardInterrupt:
                child.send_signal(signal.SIGINT)  # it finishes its attempt; the store has it
                raise
            code = child.wait()
    if code not in ANSWERED or "error" in last or not last:
        if code == 130:
            raise KeyboardInterrupt
        raise _failure(last, code, drain.text)
    return last


class _Drain:
    """Reads a pipe to its end beside the other one, so that neither fills up."""

    def __init__(self, pipe: Any) -> None:
        import threading

        self.text = ""
        self._pipe = pipe
        self._thread = threading.Thread(target=self._read, daemon=True)

    def _read(self) -> None:
        self.text = self._pipe.read().decode(errors="replace")

    def __enter__(self) -> _Drain:
        self._thread.start()
        return self

    def __exit__(self, *why: object) -> None:
        self._thread.join()
