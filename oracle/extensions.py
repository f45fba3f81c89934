# SPDX-License-Identifier: Apache-2.0
"""Code that a ModelNew compiles: built in a separate process and reused by the guest, which cannot start programs.

The build process (guest.py, opened with `build`) runs the real torch.utils.cpp_extension.load and load_inline into a folder and notes
what came of each call. The guest, for which that folder is read-only, answers the same calls from the notes. Programs that are only asked
something (`ptxas --version`, `ldconfig -p`) are noted and answered in the same way: Triton asks them before it looks into its cache.

Nothing here is trusted: the folder is the candidate's own, and no other candidate sees it.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

INDEX = "index.json"
MAX_OUTPUT = 1 << 20
_IGNORED = ("build_directory", "verbose")  # of a call: they do not change what is made


class Notes:
    """The index of a folder: calls, and what they gave."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        path = self.folder / INDEX
        self.found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def put(self, key: str, value: Any) -> None:
        self.found[key] = value
        (self.folder / INDEX).write_text(json.dumps(self.found))


def key_of(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """The same for the same call in another process."""
    try:
        given = dict(inspect.signature(function).bind(*args, **kwargs).arguments)
    except TypeError:
        given = {"args": args, "kwargs": kwargs}
    text = json.dumps([name, {k: v for k, v in given.items() if k not in _IGNORED}], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def question_key(function: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """Of a program that is asked something: its environment names folders of this process, and does not count. Python asks `file` what
    platform this is with a copy of it, and Triton's cache goes by the answer."""
    return key_of("ask", function, args, {k: v for k, v in kwargs.items() if k not in ("env", "timeout")})


def _opened(entry: dict[str, Any]) -> Any:
    """The library of a note, as the call would have given it."""
    if not entry["python"]:
        import torch

        torch.ops.load_library(entry["library"])
        return entry["library"]
    spec = importlib.util.spec_from_file_location(entry["name"], entry["library"])
    if spec is None or spec.loader is None:
        raise ImportError(f"{entry['library']} is not an extension")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[entry["name"]] = module
    return module


def _replace(owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    setattr(owner, name, make(getattr(owner, name)))


def note_builds(folder: str) -> None:
    """In the build process: puts everything that is built into `folder` and records it."""
    import torch.utils.cpp_extension as extension

    notes = Notes(folder)

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            key = key_of(original.__name__, original, args, kwargs)
            place = notes.folder / key[:16]
            place.mkdir(exist_ok=True)
            made = original(*args, **{**kwargs, "build_directory": str(place)})
            library = getattr(made, "__file__", None) or str(max(place.glob("*.so"), key=lambda p: p.stat().st_mtime))
            python = hasattr(made, "__file__")
            notes.put(key, {"library": library, "name": made.__name__ if python else "", "python": python})
            return made

        return call

    def asking(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            output = original(*args, **kwargs)
            data = output.encode() if isinstance(output, str) else output
            if isinstance(data, bytes) and len(data) <= MAX_OUTPUT:
                notes.put(question_key(original, args, kwargs), {"output": base64.b64encode(data).decode(), "text": isinstance(output, str)})
            return output

        return call

    _replace(extension, "load", noting)
    _replace(extension, "load_inline", noting)
    _replace(subprocess, "check_output", asking)


def find_builds(folder: str) -> None:
    """In the guest, if something was built for it: answers the same calls from the records."""
    if not (Path(folder) / INDEX).exists():
        return
    import torch.utils.cpp_extension as extension

    notes = Notes(folder)

    def finding(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            entry = notes.found.get(key_of(original.__name__, original, args, kwargs))
            if entry is None:
                raise PermissionError(f"{original.__name__}() is called with what was not built: build at import, in __init__ or in the first forward, the same every time")
            return _opened(entry)

        return call

    def answering(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            entry = notes.found.get(question_key(original, args, kwargs))
            if entry is None:
                return original(*args, **kwargs)
            data = base64.b64decode(entry["output"])
            return data.decode() if entry["text"] else data

        return call

    _replace(extension, "load", finding)
    _replace(extension, "load_inline", finding)
    _replace(subprocess, "check_output", answering)


class Starts:
    """Has the module tried to start a program, to write where what is compiled is kept, or taken up what compiles? Then a build process may
    help; told, not believed. What compiles may have been imported by torch already, and fails at its cache before it starts anything. A fork
    alone compiles nothing, and its child may never end."""

    def __init__(self, folder: str = "") -> None:
        self.seen = False
        self.folder = folder
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: Any) -> None:
        if event in ("subprocess.Popen", "os.posix_spawn", "os.exec", "os.system"):
            self.seen = True
        if event in ("os.mkdir", "open") and self.folder and str(args[0]).startswith(self.folder):
            self.seen = True
        if event == "import" and args[0] in ("torch.utils.cpp_extension", "triton"):
            self.seen = True


def keep_caches(folder: str) -> None:
    """Caches of torch and Triton lie in the folder, too."""
    for name, part in (("TORCH_EXTENSIONS_DIR", "torch"), ("TRITON_CACHE_DIR", "triton")):
        os.environ[name] = str(Path(folder) / part)
