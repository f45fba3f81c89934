# SPDX-License-Identifier: Apache-2.0
"""The guest: runs a foreign ModelNew in a process of its own, as the runner runs a .cu file.

The same protocol as the runner's (docs/architecture.md): load, bind, run, time, end; besides, `make` before each bind, and `burst`, by
which the asker's own clock is held against ours. Nothing here is secret and nothing this process says is trusted: there is no
task, no reference, no tolerance and no seed; inputs and outputs are files that the oracle writes and copies. Refusals here tell an honest
author what is wrong with a module. They prove nothing about a dishonest module, which may change any of this code.

1. The module can start no program and no process: seal.py, before it is imported. What it compiles is made by another process of
   this program, opened with `build`, which gets no inputs (extensions.py).
2. ModelNew is made before the inputs of its draw exist in this process or its folder.
3. What is used after the candidate was loaded was saved before: a patched torch or time is detected.
4. A result is copied out at once, in the order of the current stream: work left to other streams, threads or later comes too late.
5. The memory a call's result may land in holds NaN before the call: a result of an earlier call does not count.
6. Inputs get their values late, in stream order, and held other values before: code that does not wait reads wrong values.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import mmap
import os
import re
import sys
import threading
import time
import traceback
import types
import warnings
from pathlib import Path
from typing import Any, Callable

CLOCK = time.perf_counter
MAX_TEXT = 4000
CPU_SAMPLES = 2  # no time is given there: only a clock to hold against another


class Outcome(Exception):
    """The candidate's fault: becomes the answer's outcome."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text[:MAX_TEXT]


def words_of(err: BaseException, path: Path) -> str:
    """The error with the candidate's own line."""
    frames = [f for f in traceback.extract_tb(err.__traceback__) if f.filename == str(path)]
    where = f"{path.name}:{frames[-1].lineno}: " if frames else ""
    text = str(err).strip()
    errors = [line for line in text.splitlines() if re.search(r"\berror\b", line)]  # a compiler's output
    first = "\n".join(errors[:5]) if len(text) > 600 and errors else text[:1500]
    return f"{where}{type(err).__name__}: {first}{advice(err)}"


def advice(err: BaseException) -> str:
    """What a module that worked elsewhere may be missing here."""
    if isinstance(err, (ImportError, KeyError, FileNotFoundError)) or (isinstance(err, NameError) and "Model" in str(err)):
        return "; a ModelNew stands on its own: the task, its Model and the files beside it are not there when it is judged"
    if isinstance(err, PermissionError):
        return "; a ModelNew may not start programs, nor use files outside of its own folder"
    return ""


def watched() -> dict[str, tuple[Any, str, Any]]:
    """What a candidate must not replace: name -> (owner, attribute, original value)."""
    import torch

    from oracle import baseline, cuda

    places: list[tuple[str, Any, str]] = [
        *((f"time.{n}", time, n) for n in ("time", "perf_counter", "perf_counter_ns", "monotonic", "time_ns")),
        *((f"torch.{n}", torch, n) for n in ("allclose", "equal", "isclose", "empty", "empty_strided", "empty_like", "amax", "zeros")),
        *((f"torch.Tensor.{n}", torch.Tensor, n) for n in ("copy_", "__eq__", "fill_", "clone", "to", "__getattribute__")),
        *((f"torch.cuda.{n}", torch.cuda, n) for n in ("synchronize", "Event", "Stream", "current_stream", "stream", "CUDAGraph", "_sleep")),
        *((f"torch.cuda.Event.{n}", torch.cuda.Event, n) for n in ("record", "elapsed_time", "synchronize")),
        *((f"oracle.baseline.{n}", baseline, n) for n in ("_flusher", "_captured")),
        *((f"oracle.cuda.{n}", cuda, n) for n in ("reset_kept", "_driver")),
        ("torch.nn.Module.__call__", torch.nn.Module, "__call__"),
        ("threading.Thread.start", threading.Thread, "start"),
        ("json.dumps", json, "dumps"),
    ]
    return {name: (owner, attr, getattr(owner, attr)) for name, owner, attr in places if hasattr(owner, attr)}


class Guest:
    """One candidate."""

    def __init__(self) -> None:
        import torch

        from oracle import baseline, cuda, operators, task, truth  # all that is ever needed: no import comes later
        from oracle.exchange import write_all
        from oracle.fault import is_out_of_memory
        from oracle.graph import Tracer

        self.torch, self.task_module, self.Tracer, self.operators = torch, task, Tracer, operators
        self.baseline, self.cuda, self.write_all = baseline, cuda, write_all
        self.is_out_of_memory = is_out_of_memory
        truth.set_arithmetic(*truth.SETTINGS["strict"])
        self.copy, self.fill, self.empty = torch.Tensor.copy_, torch.Tensor.fill_, torch.empty_strided
        self.frames = sys._current_frames
        self.maps: list[Any] = []
        self.runs = 0
        doings = (self.open, self.load, self.make, self.bind, self.run, self.time, self.burst, self.rehearse, self.witness)
        self.doings = {doing.__name__: doing for doing in doings}
        self.building = False
        self.starts: Any = None
        self.graph: Any = None
        self.made: Any = None  # what forward returned while the graph was captured

    # ---- load -----------------------------------------------------------------------------------

    def open(self, request: dict[str, Any]) -> dict[str, Any]:
        """The only answer of this process that is trusted: the module is not loaded yet."""
        torch = self.torch
        name = request["device"]
        self.device = torch.device("cpu" if name == "simt" else name)
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.cuda.init()
            torch.cuda.synchronize()
        self.building = bool(request.get("build"))
        if self.building:
            return {}
        limit_memory(int(request.get("memory") or 0))
        if self.device.type != "cuda":
            undumpable()
        why = seal()
        if why:
            return {"ok": False, "kind": "machine", "text": f"a module cannot be kept from starting programs here: {why}"}
        return {}

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        self.path = Path(request["module"])
        self.inputs, self.outputs = request["inputs"], request["outputs"]
        self.allow_torch = bool(request.get("allow_torch"))
        self.values = request.get("values") or {}
        folder = request.get("extensions")
        if folder:
            keep_caches(folder)
            (note_builds if self.building else find_builds)(folder)
        self.starts = Starts(str(folder or ""))
        self.watched = watched()
        self.threads = set(self.frames())
        self.module = self._import()
        self._check_patches()
        return {"device": {"name": "PyTorch " + self.torch.__version__}}

    def _import(self) -> types.ModuleType:
        module = types.ModuleType("candidate")
        module.__file__ = str(self.path)
        sys.modules["candidate"] = module
        try:
            tree = ast.parse(self.path.read_text(encoding="utf-8-sig"), str(self.path))
            tree = self.task_module._Replace(self.values).visit(tree)  # the task's sizes, where it has them too
            exec(compile(ast.fix_missing_locations(tree), str(self.path), "exec"), module.__dict__)
        except BaseException as err:
            raise Outcome("compile error", words_of(err, self.path)) from err
        if not callable(getattr(module, "ModelNew", None)):
            raise Outcome("compile error", f"{self.path.name} defines no class ModelNew")
        return module

    def make(self, request: dict[str, Any]) -> dict[str, Any]:
        """A fresh ModelNew, which can find nothing of an earlier draw."""
        torch = self.torch
        self.ins, self.outs, self.given, self.graph, self.made = [], [], [], None, None
        tensors = [self._read(place) for place in request.get("tensors", [])]
        init = decode(request["init"], tensors, self.device)
        torch.manual_seed(self.runs)
        build = self.module.ModelNew
        try:
            model = build(**init) if isinstance(init, dict) else build(*init)
            self.model = model.to(self.device).requires_grad_(False)
        except BaseException as err:
            raise Outcome("compile error", "ModelNew() fails: " + words_of(err, self.path)) from err
        return {}

    def rehearse(self, request: dict[str, Any]) -> dict[str, Any]:
        """A call with inputs of our own making, so that what is compiled late is compiled while programs may be started."""
        torch = self.torch
        args = [self._invented(info) for info in self.inputs if info["role"] == "input"]
        try:
            with torch.no_grad():
                self.model(*args)
            self._settle()
        except BaseException as err:  # the judged calls will tell
            return {"text": words_of(err, self.path)}
        return {}

    def _invented(self, info: dict[str, Any]) -> Any:
        tensor = self.empty(info["shape"], info["strides"], dtype=self._dtype(info), device=self.device)
        if tensor.numel() and 0 not in tensor.stride():
            self.fill(tensor, 1)
        return tensor

    def _check_patches(self) -> None:
        for name, (owner, attribute, before) in self.watched.items():
            if getattr(owner, attribute, None) is not before and getattr(owner, attribute, None) != before:
                raise Outcome("refused", f"it replaces {name}: a candidate computes; it does not change the tools it is judged with")

    def _check_threads(self) -> None:
        more = [t for t in set(self.frames()) - self.threads if t != threading.get_ident()]
        if more:
            raise Outcome("refused", f"{len(more)} thread{'s' if len(more) > 1 else ''} of its own still running after forward returned: what it does then is not timed")

    # ---- bind -----------------------------------------------------------------------------------

    def bind(self, request: dict[str, Any]) -> dict[str, Any]:
        places = request["buffers"]
        self.in_places = [places[f"in{k}"] for k in range(len(self.inputs))]
        self.out_places = [places[f"out{k}"] for k in range(len(self.outputs))]
        self.ins = [self._read({**place, **info}) for place, info in zip(self.in_places, self.inputs)]
        self.outs = [self.empty(o["shape"], o["strides"], dtype=self._dtype(o), device=self.device) for o in self.outputs]
        count = sum(i["role"] == "input" for i in self.inputs)
        self.given, held = self.ins[:count], self.ins[count:]
        self.arguments, self.keywords = decode(request["call"], self.given, self.device)
        self.graph = None
        self._take_weights(held, self.inputs[count:])
        if self.runs == 0 and not self.allow_torch:
            self._refuse_torch()
        return {}

    def _dtype(self, info: dict[str, Any]) -> Any:
        return next(dtype for dtype, name in self.task_module.DTYPES.items() if name == info["dtype"])

    def _read(self, place: dict[str, Any]) -> Any:
        """An input. On the CPU it is the file itself, so that what is done to it is seen outside."""
        torch = self.torch
        if not place["bytes"]:
            return self._view(torch.empty(0, dtype=torch.uint8), place).to(self.device)
        with open(place["path"], "r+b") as file:
            mapped = mmap.mmap(file.fileno(), place["bytes"])
        self.maps = (self.maps + [mapped])[-256:]
        flat = torch.frombuffer(mapped, dtype=torch.uint8)
        return self._view(flat.to(self.device) if self.device.type == "cuda" else flat, place)

    def _deliver(self) -> None:
        """The outputs to their files; on a GPU also inputs that are not what they were."""
        for place, tensor in zip(self.out_places, self.outs):
            self._write(place, tensor.detach().cpu().contiguous())
        if self.device.type != "cuda":
            return
        for place, info, tensor in zip(self.in_places, self.inputs, self.ins):
            if place["bytes"]:
                now = self._read({**place, **info})
                if not self.torch.equal(now.view(-1) if now.is_contiguous() else now, tensor.view(-1) if tensor.is_contiguous() else tensor):
                    self._write(place, self.torch.zeros(place["bytes"], dtype=self.torch.uint8))

    def _write(self, place: dict[str, Any], tensor: Any) -> None:
        fd = os.open(place["path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            self.write_all(fd, tensor)
        finally:
            os.close(fd)

    def _view(self, raw: Any, info: dict[str, Any]) -> Any:
        flat = raw.view(self._dtype(info))
        return self.torch.as_strided(flat, info["shape"], info["strides"], flat.storage_offset()) if raw.numel() else flat.reshape(info["shape"])

    def _take_weights(self, held: list[Any], infos: list[dict[str, Any]]) -> None:
        """The reference's parameters and buffers, by name; by order where the names are others but everything fits."""
        mine = {h.name: h.tensor for h in self.task_module.held_tensors(self.model)}
        missing = [i["name"] for i in infos if i["name"] not in mine or list(mine[i["name"]].shape) != i["shape"]]
        targets = [mine.get(i["name"]) for i in infos]
        if missing:
            targets = list(mine.values())
            if [list(t.shape) for t in targets] != [i["shape"] for i in infos]:
                raise Outcome("refused", f"ModelNew does not hold the model's weights: {missing[0]!r} is missing or of another shape; it has {', '.join(mine) or 'none'}")
        with self.torch.no_grad():
            for target, value in zip(targets, held):
                target.copy_(value)

    def _refuse_torch(self) -> None:
        """One forward with every torch operator inside it noted. Operators of the candidate's own are welcome."""
        names = self.operators
        harmless = {*names.FACTORIES, *names.SAME, *names.VIEWS, "copy_", "_to_copy", "contiguous", "clone", "zero_", "fill_", "resize_", "empty_like",
                    "zeros_like", "new_empty", "new_zeros", "new_empty_strided", "detach", "detach_", "lift_fresh", "set_", "record_stream"}
        tracer = self.Tracer([])
        args, kwargs = self.arguments, self.keywords
        with tracer, self.torch.no_grad():
            self._call(args, kwargs)
        inside = sorted({node.op for node in tracer.nodes if node.op.startswith("aten.") and node.name not in harmless})
        if inside:
            raise Outcome("refused", "forward leaves its work to torch: " + ", ".join(inside[:8]) + "; --allow-torch judges it all the same")

    # ---- run ------------------------------------------------------------------------------------

    def _call(self, args: Any, kwargs: Any) -> Any:
        try:
            return self.model(*args, **kwargs)
        except Outcome:
            raise
        except BaseException as err:
            kind = "out of memory" if self.is_out_of_memory(err) else "crash"
            raise Outcome(kind, words_of(err, self.path)) from err

    def _plain(self, value: Any) -> list[Any]:
        """The result's tensors, checked to be what the reference returns: plain, dense, on the device."""
        torch = self.torch
        leaves: list[tuple[str, Any]] = []
        self.task_module.flatten(value, "", leaves)
        tensors = [leaf for _, leaf in leaves if isinstance(leaf, torch.Tensor) or hasattr(leaf, "__torch_function__")]
        if len(tensors) != len(self.outputs):
            raise Outcome("wrong values", f"forward returns {len(tensors)} tensors, the reference {len(self.outputs)}")
        for tensor, info in zip(tensors, self.outputs):
            if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.device.type != self.device.type or tensor.layout != torch.strided:
                raise Outcome("refused", f"{info['name']} is not a plain tensor on {self.device} but a {type(tensor).__name__} on {getattr(tensor, 'device', '?')}: it would be computed only when it is read")
            dtype = self.task_module.DTYPES.get(tensor.dtype, str(tensor.dtype))
            if list(tensor.shape) != info["shape"] or dtype != info["dtype"]:
                raise Outcome("wrong values", f"{info['name']} is {dtype} {list(tensor.shape)}, the reference's {info['dtype']} {info['shape']}")
        return tensors

    def _poison(self) -> None:
        """Leaves NaN in the memory that the next results will be made in, as far as the allocator reuses it."""
        made = [self.torch.empty_strided(o.shape, o.stride(), dtype=o.dtype, device=o.device) for o in self.outs for _ in range(2)]
        for tensor in made:
            self._spoil(tensor)

    def _spoil(self, tensor: Any) -> None:
        if tensor.numel() and not tensor.is_inference():
            self.fill(tensor, float("nan") if tensor.is_floating_point() else 1)

    def _settle(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.synchronize(self.device)

    def _once(self) -> list[Any]:
        """One call, whose result is copied out at once. On CUDA the inputs arrive late, in stream order."""
        torch = self.torch
        args, kwargs = self.arguments, self.keywords
        self._poison()
        if self.device.type == "cuda":
            late = [(t, t.clone()) for t in self.given if t.is_floating_point() and 0 not in t.stride()]
            for tensor, _ in late:
                self._spoil(tensor)
            self._settle()
            torch.cuda._sleep(4_000_000)  # some 2 ms
            for tensor, value in late:
                self.copy(tensor, value)
        with torch.no_grad():
            results = self._plain(self._call(args, kwargs))
            for out, result in zip(self.outs, results):
                self.copy(out, result)
        self._settle()
        return results

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        first = self._once()
        for result in first:
            with self.torch.no_grad():
                self._spoil(result)
        for out in self.outs:
            self._spoil(out)
        self._once()  # the same inputs again: what was kept from the first call is spoilt now
        self.runs += 1
        self._check_threads()
        self._check_patches()
        self._deliver()
        return {}

    # ---- time -----------------------------------------------------------------------------------

    def _timed_call(self) -> Callable[[], Any]:
        """The call as a graph where it can be captured: no host time, and nothing outside of the stream."""
        args, kwargs = self.arguments, self.keywords
        if self.device.type != "cuda":
            return lambda: self._call(args, kwargs)
        if self.graph is None:
            try:
                with self.torch.no_grad():
                    self.graph = self.baseline._captured(lambda: self._keep(self._call(args, kwargs)))
                self.captured = True
            except BaseException:
                self._settle()
                self.graph = lambda: self._call(args, kwargs)
                self.captured = False
        return self.graph

    def _stir(self, turn: int) -> None:
        """Changes a few elements of every input, so that no call is like one before."""
        for tensor in self.given:
            if tensor.is_floating_point() and tensor.numel() and 0 not in tensor.stride():
                flat = tensor.as_strided((tensor.numel(),), (1,)) if tensor.is_contiguous() else tensor[..., 0].reshape(-1)[:1]
                step = max(flat.numel() // 61, 1)
                flat[turn % step :: step].mul_(1.0 + 2.0**-9)

    def time(self, request: dict[str, Any]) -> dict[str, Any]:
        torch = self.torch
        kept = [t.clone() for t in self.given]
        with torch.no_grad():
            call = self._timed_call()
            cold, warm = (self._samples(call, int(request[key]), key == "cold") for key in ("cold", "warm"))
            if getattr(self, "captured", False):
                self._same_as_timed()
            for tensor, value in zip(self.given, kept):
                if 0 not in tensor.stride():
                    self.copy(tensor, value)
        self._settle()
        self._check_patches()
        self._check_threads()
        self._last()
        return {"cold_us": cold, "warm_us": warm, "captured": getattr(self, "captured", False)}

    def _keep(self, value: Any) -> Any:
        self.made = value
        return value

    def _same_as_timed(self) -> None:
        """A graph could have been made of less than forward does: both must agree on inputs neither has met."""
        torch = self.torch
        for tensor in self.given:
            if tensor.is_floating_point() and tensor.numel() > 1 and 0 not in tensor.stride():
                self.copy(tensor, torch.roll(tensor, tensor.numel() // 3 + 1).reshape(tensor.shape))
        timed = self._plain(self.made)
        for result in timed:
            self._spoil(result)
        self.graph()
        self._settle()
        timed = [r.clone() for r in timed]
        args, kwargs = self.arguments, self.keywords
        for one, two in zip(timed, self._plain(self._call(args, kwargs))):
            if one.numel() and not torch.equal(one, two) and not torch.allclose(one.double(), two.double(), 1e-2, 1e-2 * float(two.double().abs().nan_to_num(0).mean()), equal_nan=True):
                raise Outcome("wrong values", "what was timed, a CUDA graph of forward, gives other results than forward")

    def _last(self) -> None:
        """What is compared after timing: an ordinary call."""
        self._once()
        self._deliver()

    def _samples(self, call: Callable[[], Any], count: int, cold: bool) -> list[float]:
        torch = self.torch
        times = []
        for _ in range(3 if self.device.type == "cuda" else 0):
            call()
        self._settle()
        if self.device.type != "cuda":
            for turn in range(min(count, CPU_SAMPLES)):
                self._stir(turn)
                start = CLOCK()
                call()
                times.append(1e6 * (CLOCK() - start))
            return times
        flush = self.baseline._flusher(self.device) if cold else (lambda: None)
        pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for turn, (begin, end) in enumerate(pairs):
            self._stir(turn)
            if cold:
                self._settle()
                self.cuda.reset_kept()
            flush()
            torch.cuda._sleep(200_000 if cold else 40_000)  # the call is queued before the clock starts
            begin.record()
            call()
            end.record()
            if turn % 16 == 15:
                self._settle()
        self._settle()
        return [1000.0 * begin.elapsed_time(end) for begin, end in pairs]

    def witness(self, request: dict[str, Any]) -> dict[str, Any]:
        """Calls and nothing else: what is launched meanwhile is the module's (witness.c records it from outside)."""
        with self.torch.no_grad():
            for _ in range(3):
                self._call(self.arguments, self.keywords)
        self._settle()
        return {}

    def burst(self, request: dict[str, Any]) -> dict[str, Any]:
        """That many calls, then waits for the whole device: timed by the client's clock."""
        with self.torch.no_grad():
            call = self._timed_call()
            for _ in range(int(request["calls"])):
                call()
        self._settle()
        return {"captured": getattr(self, "captured", False)}


def answer(guest: Guest, request: dict[str, Any]) -> dict[str, Any]:
    doing = request.get("do")
    try:
        if doing not in guest.doings:
            return {"ok": False, "kind": "use", "text": f"no request {doing!r}", "hint": "see docs/architecture.md"}
        return {"ok": True, "outcome": "ok", **guest.doings[doing](request)}
    except Outcome as outcome:
        wants = not guest.building and guest.starts is not None and guest.starts.seen
        return {"ok": True, "outcome": outcome.kind, "text": outcome.text, "build": wants}
    except Exception as err:
        from oracle.fault import Fault, is_out_of_memory

        if isinstance(err, Fault):
            return err.answer()
        traceback.print_exc()
        if is_out_of_memory(err):
            return {"ok": True, "outcome": "out of memory", "text": str(err)[:500]}
        return {"ok": True, "outcome": "crash", "text": f"{type(err).__name__}: {str(err)[:500]}"}


def main() -> int:
    from oracle.main import plain, take_streams

    requests, answers = take_streams()
    write, dumps, loads = answers.write, json.dumps, json.loads
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    guest = Guest()
    for line in requests:
        if not line.strip():
            continue
        request = loads(line)
        if request.get("do") == "end":
            break
        write(dumps(plain(answer(guest, request))) + "\n")
        answers.flush()
    return 0


def load_package() -> None:
    """Makes our own modules importable from their folder only, since nothing beside it is visible here."""
    folder = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location("oracle", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["oracle"] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    load_package()
    from oracle.extensions import Starts, find_builds, keep_caches, note_builds
    from oracle.limits import limit_memory
    from oracle.plain_data import decode
    from oracle.seal import seal, undumpable

    code = main()
    sys.stdout.flush()
    os._exit(code)  # whatever the candidate left running ends here
