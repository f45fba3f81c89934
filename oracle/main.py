# SPDX-License-Identifier: Apache-2.0
"""The oracle's protocol: one JSON request per line on stdin, one JSON answer per line on stdout (docs/architecture.md).

1. The answer stream is private: descriptor 1 is stderr and descriptor 0 is empty for everything a task does.
2. Every request gets exactly one answer; a failure is an answer, too.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, TextIO

OTHERS_SHARE = 16  # of a device's memory: contexts of ours that wait take less


def take_streams() -> tuple[TextIO, TextIO]:
    """The client's pipes, unreachable for prints and reads in a task."""
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


def plain(value: Any) -> Any:
    """JSON has no NaN and no infinity, and no text that is not Unicode: a file's name in an error may be none."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    if isinstance(value, float):
        return (
            value
            if math.isfinite(value)
            else None if math.isnan(value) else math.copysign(sys.float_info.max, value)
        )
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


RESTING = 16  # shapes of one task that an oracle knows beside the loaded one


def stand_in(folder: str, task: str) -> None:
    """The asker's folder where it is one of ours to see, else the task's: what a task opens by a relative name."""
    for place in (folder, os.path.dirname(task), "/"):
        try:
            os.listdir(place)
            os.chdir(place)
            return
        except OSError:
            continue


def keep_private() -> None:
    """TMPDIR is this process's own folder: whatever PyTorch compiles or keeps goes there, and is used by no other process."""
    own = os.environ.get("TMPDIR", "")
    if own:
        os.environ.update(
            TORCHINDUCTOR_CACHE_DIR=os.path.join(own, "inductor"),
            TRITON_CACHE_DIR=os.path.join(own, "triton"),
            TORCH_EXTENSIONS_DIR=os.path.join(own, "extensions"),
            XDG_CACHE_HOME=os.path.join(own, "cache"),
        )
    if "HOME" not in os.environ:  # confined: there is no home, nor a list of users to look one up in
        os.environ.update(HOME=own or "/", USER="cutegen", LOGNAME="cutegen")
        if "--cuda" not in sys.argv[1:]:  # whose driver names its threads in /proc/self, which would be root's
            from oracle.seal import undumpable

            undumpable()


class Oracle:
    """Executes requests; one task is loaded at a time."""

    def __init__(self, sources: Any) -> None:
        self.sources = sources
        self.session: Any = None
        self.resting: list[Any] = []  # other shapes and tasks, known but without buffers
        self.later: Any = None  # what is done once the answer is out

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        from oracle.fault import use

        doing = request.get("do")
        if doing == "load":
            return self.load(request)
        if doing == "ready":
            return self.ready(request)
        if doing == "end":
            self.release()
            return {}
        if doing == "rest":
            if self.session is not None and self.session.is_small():
                self.later = self.session.rest
            elif self.session is not None:
                self.session.rest()
            return {}
        if doing not in ("draw", "hand", "compare", "trivial", "baseline", "reference", "clocks"):
            raise use(f"no request {doing!r}", "load, draw, hand, compare, trivial, baseline, reference, clocks, rest, end")
        if self.session is None:
            raise use("no task is loaded", "load one first")
        return self.carry_out(doing, request)

    def ready(self, request: dict[str, Any]) -> dict[str, Any]:
        """The device is open: done before the GPU has to be held."""
        from oracle.devices import open_device

        open_device(str(request.get("device", "cpu")))
        return {}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        from oracle import dynamo
        from oracle.limits import IMPORT_S, LIMITS
        from oracle.session import Session

        self.sources.check()
        LIMITS.import_s = float(request.get("import_s") or IMPORT_S)
        if "dir" in request:
            stand_in(request["dir"], str(request.get("task", "")))
        if self.session is not None and str(self.session.source.path) != os.path.abspath(str(request.get("task"))):
            self.release()  # nothing of one task stays beside another
        known = next((s for s in [self.session, *self.resting] if s is not None and s.is_for(request)), None)
        if known is not self.session:
            self.set_aside()
        if known is not None:
            self.resting = [s for s in self.resting if s is not known]
            self.session = known
            known.wake(request)
        else:
            self.set_aside()
            dynamo.unused()
            self.session = Session(request)
        return {"task": self.session.description()}

    def carry_out(self, doing: str, request: dict[str, Any]) -> dict[str, Any]:
        if doing == "draw":
            return self.session.draw(request)
        if doing == "hand":
            return self.session.hand()
        if doing == "compare":
            return self.session.compare()
        if doing == "reference":
            return self.session.write_reference()
        if doing == "clocks":
            from oracle.clocks import line

            return {"line": line(self.session.device)}
        if doing == "trivial":
            from oracle.trivial import trivial

            return trivial(self.session)
        from oracle.baseline import baseline

        return baseline(self.session, request)

    def set_aside(self) -> None:
        """Another shape of a task may be asked for next: what was learnt of this one stays, without its memory."""
        if self.session is None:
            return
        self.session.rest()
        self.resting.append(self.session)
        self.session = None
        for old in self.resting[:-RESTING]:
            old.release()
        self.resting = self.resting[-RESTING:]

    def release(self) -> None:
        for session in self.resting:
            session.release()
        self.resting = []
        if self.session is not None:
            self.session.release()
            self.session = None

    def out_of_memory(self, shown: dict[str, Any], doing: str) -> dict[str, Any]:
        """The answer with figures, all memory of ours given back: others may hold what was missing. A baseline's is its own: the
        candidate is timed and compared with the same draw whether or not there is one."""
        import torch

        from oracle.fault import no_memory

        if self.session is not None and doing == "baseline":
            self.session.drop_baselines()
        elif self.session is not None:
            self.session.rest()
        device = getattr(self.session, "device", torch.device("cuda") if torch.cuda.is_initialized() else None)
        if device is None or device.type != "cuda":
            return shown
        free, total = torch.cuda.mem_get_info(device)
        others = total - free > total // OTHERS_SHARE
        return no_memory(shown["text"], free + 1 if others else total, free, total).answer()

    def after(self) -> None:
        """No request waits for this. A failure ends the process, and the next borrower gets another one."""
        later, self.later = self.later, None
        if later:
            later()


def reply(oracle: Oracle | None, line: str) -> dict[str, Any]:
    """The answer to one line, whatever happens."""
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise ValueError("not an object")
    except ValueError as err:
        return {
            "ok": False,
            "kind": "use",
            "text": f"not a JSON request: {err}",
            "hint": "see docs/architecture.md",
        }
    if oracle is None:
        return {
            "ok": False,
            "kind": "machine",
            "missing": "torch",
            "text": f"{sys.executable} has no torch",
            "hint": "install PyTorch for it, or name a Python that has it: --python PATH",
        }
    from oracle.fault import Fault, is_out_of_memory

    try:
        return {"ok": True, **oracle.answer(request)}
    except Fault as fault:
        shown = fault.answer()
        short = fault.kind == "memory"
    except Exception as err:
        traceback.print_exc()
        kind = "memory" if is_out_of_memory(err) else "machine"
        place = traceback.extract_tb(err.__traceback__)[-1]
        short = kind == "memory"
        shown = {
            "ok": False,
            "kind": kind,
            "text": f"the oracle failed: {type(err).__name__}: {err} ({Path(place.filename).name}:{place.lineno})",
            "hint": (
                "make the task smaller, for example --set N=512"
                if kind == "memory"
                else "this is a bug in the oracle; its stderr has the trace"
            ),
        }
    if short:  # outside of the handler, whose trace holds tensors
        return oracle.out_of_memory(shown, str(request.get("do")))
    return shown


def load_package() -> None:
    """Our own modules, by their folder alone: what lies beside it need not be readable, and a task's names do not meet them."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location("oracle", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = package
    spec.loader.exec_module(package)


def option(name: str) -> str:
    """What follows a flag of the command line; "" without it."""
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv[1:-1] else ""


def use_errors(path: str) -> None:
    """The shared object that measures errors on the host; without one, torch does."""
    from oracle import compare, fused

    if path:
        fused.load_host(path, compare.measure)


def settle() -> None:
    """What PyTorch and its libraries read when they are imported."""
    # What is small must not be put into a large block that is free for a moment: the block could not be given back.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:1024"
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # the other cores belong to the kernel that is judged
    warnings.simplefilter("ignore")


def main(sources: Any = None) -> int:
    """`sources`: of a copier that has imported everything (copier.py)."""
    requests, answers = take_streams()
    if sources is None:
        load_package()
    from oracle.limits import LIMITS, limit_memory

    if "--private" in sys.argv[1:]:
        keep_private()

    def last_word(fault: Any) -> None:
        answers.write(json.dumps(plain(fault.answer())) + "\n")
        answers.flush()

    LIMITS.last_word = last_word
    if option("--memory"):
        limit_memory(int(option("--memory")))
    settle()
    oracle: Oracle | None = None
    process = os.getpid()
    try:
        from oracle.sources import Sources

        oracle = Oracle(sources or Sources())  # torch and all of ours are loaded now, not at the first request
        use_errors(option("--errors"))
    except ImportError as err:
        if "torch" not in str(err):
            raise
    for line in requests:
        if line.strip():
            said = json.dumps(plain(reply(oracle, line))) + "\n"
            if os.getpid() != process:
                os._exit(0)  # a child that the task has forked: the answer is its parent's
            answers.write(said)
            answers.flush()
            if oracle is not None:
                oracle.after()
            if '"end"' in line and json.loads(line).get("do") == "end":
                break
    if oracle is not None:
        oracle.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
