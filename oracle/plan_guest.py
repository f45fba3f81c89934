# SPDX-License-Identifier: Apache-2.0
"""The planning guest: a candidate written in Python (Triton, the CuTe DSL) becomes PTX and a launch list.

    stdin:  {"module": PATH, "language": "triton|cutedsl", "ptx_version": 87, "inputs": [...], "outputs": [...], "scalars": [...], "device": {...}}
    stdout: {"ok": true, "version": "3.5.1"}        before any foreign code has run: only this line is our word
            {"ok": false, "kind": "missing|machine", "text": TEXT}        instead of it, then nothing follows
            {"ok": true, "ptx": TEXT, "launches": {"workspace", "maps", "ops"}}
            {"ok": false, "kind": "plan|compile|launch", "text": TEXT, "line": 12}

One request, then it ends. The candidate's file is foreign code, so all of this runs confined (ROLE_COMPOSER), and nothing it says is
believed: PTX and list are checked like those of any candidate. There is nothing to find in here: no task, no input, no seed.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

MAX_TEXT = 4000
LANGUAGES = {"triton": "oracle.plan_triton", "cutedsl": "oracle.plan_cutedsl"}


def load_package() -> None:
    """Our own modules, by their folder alone: nothing beside it can be seen from here."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location("oracle", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = package
    spec.loader.exec_module(package)


def place_of(err: BaseException, path: str) -> int:
    frames = [f for f in traceback.extract_tb(err.__traceback__) if f.filename == path]
    if not frames and isinstance(err, SyntaxError) and err.filename == path:
        return err.lineno or 0
    return (frames[-1].lineno or 0) if frames else 0


def words_of(err: BaseException) -> str:
    text = f"{type(err).__name__}: {err}".strip()
    if isinstance(err, (FileNotFoundError, PermissionError)):
        text += "; a candidate stands on its own: it reads no files and starts no programs"
    if isinstance(err, MemoryError):
        text = "out of memory: a plan computes sizes and nothing else"
    return text


def load_module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module


def prepared(request: dict[str, Any]) -> tuple[dict[str, Any], Any, Any]:
    """What is said before foreign code runs, the language and the plan."""
    from oracle.seal import seal, undumpable

    undumpable()
    why = seal()
    if why:
        return {"ok": False, "kind": "machine", "text": f"a plan cannot be kept from starting programs here: {why}"}, None, None
    from oracle.plan_objects import Plan, PlanError

    try:
        language = importlib.import_module(LANGUAGES[request["language"]])
        plan: Any = Plan(request, language.DTYPES, request["module"], language.TENSOR)
        language.enter(plan, request["ptx_version"], request["module"])
    except PlanError as err:  # the task has types that it has not
        plan = err
    except Exception as err:  # not there, or another version than the ones that are known
        return {"ok": False, "kind": "missing", "text": f"{type(err).__name__}: {err}"}, None, None
    return {"ok": True, "version": language.version()}, language, plan


def planned(path: str, language: Any, plan: Any) -> dict[str, Any]:
    from oracle.plan_objects import PlanError

    try:
        if isinstance(plan, PlanError):
            raise plan
        made = getattr(load_module(path), "plan", None)
        if not callable(made):
            raise PlanError("there is no function plan(p) in this file")
        made(plan)
        return {"ok": True, "launches": plan.launches(), "ptx": language.ptx()}
    except BaseException as err:  # SystemExit and KeyboardInterrupt too: they are the candidate's
        fault = err if isinstance(err, PlanError) else language.fault_of(err, path)
        fault = fault or PlanError(words_of(err))
        line = fault.line or place_of(err, path)
        return {"ok": False, "kind": fault.kind, "text": str(fault)[:MAX_TEXT], "line": line}


def surroundings(request: dict[str, Any], folder: str) -> dict[str, str]:
    """What compilers read when they are imported: where they may write, and what for."""
    arch = request["device"].get("arch", 80)
    return {
        "HOME": folder,  # Triton and torch ask for one
        "TRITON_CACHE_DIR": os.path.join(folder, "triton"),
        "CUTE_DSL_ARCH": f"sm_{arch}{'a' if arch >= 90 else ''}",
        "CUTE_DSL_DUMP_DIR": folder,
        "CUTE_DSL_DISABLE_FILE_CACHING": "1",
        "CUTE_DSL_LINEINFO": "1",
        "NO_COLOR": "1",
    }


def main() -> None:
    request = json.loads(sys.stdin.readline())
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a candidate prints is not our answer
    os.environ.update(surroundings(request, os.environ.get("TMPDIR", "/tmp")))
    said, language, plan = prepared(request)
    answer.write(json.dumps(said) + "\n")
    answer.flush()
    if language is not None:
        answer.write(json.dumps(planned(request["module"], language, plan)) + "\n")
        answer.flush()
    os._exit(0)  # threads and exit handlers of the candidate do not keep it


if __name__ == "__main__":
    load_package()
    main()
