"""An oracle process as its asker sees it, and task files made from their parts. Standard library only."""

from __future__ import annotations

import array
import atexit
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

ROOT = Path(os.environ.get("CUTEGEN_ROOT", Path(__file__).resolve().parents[2]))
HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
CODES = {"f32": "f", "f64": "d", "i32": "i", "i64": "q", "u8": "B", "bool": "B", "f16": "H", "bf16": "H"}


class Oracle:
    """One oracle process; ask() sends a request and gives the answer."""

    def __init__(self, root: Path = ROOT) -> None:
        self.work = Path(tempfile.mkdtemp(prefix="oracle-test-"))
        self.process = subprocess.Popen(
            [sys.executable, str(root / "oracle" / "main.py"), "--errors", os.environ.get("CUTEGEN_ERRORS", "")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.task: dict[str, Any] = {}
        self.buffers: dict[str, Any] = {}

    def ask(self, **request: Any) -> dict[str, Any]:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def load(self, path: str | Path, **more: Any) -> dict[str, Any]:
        answer = self.ask(do="load", task=str(path), device="cpu", work=str(self.work), **more)
        self.task = answer.get("task", {})
        return answer

    def load_text(self, text: str, **more: Any) -> dict[str, Any]:
        path = self.work / "task.py"
        path.write_text(text)
        return self.load(path, **more)

    def draw(self, seed: str = "1", **more: Any) -> dict[str, Any]:
        answer = self.ask(do="draw", seed=seed, **more)
        self.buffers = answer.get("buffers", {})
        return answer

    def info(self, name: str) -> dict[str, Any]:
        return self.task["inputs" if name.startswith("in") else "outputs"][int(name.lstrip("inout"))]

    def read(self, name: str) -> array.array:
        place = self.buffers[name]
        with open(place["path"], "rb") as file:
            file.seek(place["offset"])
            return array.array(CODES[self.info(name)["dtype"]], file.read(place["bytes"]))

    def write(self, name: str, values: Any, at: int = 0) -> None:
        """Puts values at element `at` of a buffer; beyond its ends is possible, as it is for a kernel."""
        place = self.buffers[name]
        data = array.array(CODES[self.info(name)["dtype"]], values)
        with open(place["path"], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            start = place["offset"] + at * data.itemsize
            mapped[start : start + len(data) * data.itemsize] = data.tobytes()

    def change(self, name: str, edit: Callable[[array.array], Any]) -> None:
        values = self.read(name)
        edit(values)
        self.write(name, values)

    def judge(self) -> dict[str, Any]:
        answer = self.ask(do="compare")
        assert answer["ok"], answer
        return answer

    def close(self) -> int:
        self.process.stdin.close()
        code = self.process.wait(30)
        self.process.stdout.close()
        shutil.rmtree(self.work)
        return code


def model(forward: str, inputs: str, init: str = "", constants: str = "", init_inputs: str = "[]") -> str:
    """A task file from its parts."""
    made = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    return f"{HEAD}{constants}\nclass Model(nn.Module):\n{made}    def forward(self, {forward}\n\ndef get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return {init_inputs}\n"


COPY = model("x): return x + 0", "[torch.rand(64, 96)]")


class OracleTest(unittest.TestCase):
    """With one oracle for all: what a fault leaves behind would be seen by the next test."""

    oracle: Oracle

    @classmethod
    def setUpClass(cls) -> None:
        if not hasattr(OracleTest, "oracle"):
            OracleTest.oracle = Oracle()
            atexit.register(OracleTest.oracle.close)

    def loaded(self, text: str, **more: Any) -> dict[str, Any]:
        answer = self.oracle.load_text(text, **more)
        self.assertTrue(answer["ok"], answer)
        return answer["task"]

    def judged(
        self, distribution: str = "normal", edit: Callable[[array.array], Any] | None = None, seed: str = "1"
    ) -> dict[str, Any]:
        """The first output's comparison for the reference's own answer, changed by `edit`."""
        self.assertTrue(self.oracle.draw(seed, distribution=distribution)["ok"])
        self.assertTrue(self.oracle.ask(do="reference")["ok"])
        if edit:
            self.oracle.change("out0", edit)
        return self.oracle.judge()["outputs"][0]
