# SPDX-License-Identifier: Apache-2.0
"""Time PyTorch: eager, the same in a CUDA graph, torch.compile, eager under the other settings of fp32 (truth.py).
CUDA events, cold and warm L2.

1. The flush reads: a flush that writes would leave dirty lines, whose eviction would be charged to the timed work.
2. A sample counts when all of it was queued before the device began with it: no time of the host is in it, however busy the
   host. If the host cannot queue work fast enough during the flush, it gets a head start: the device waits first.
3. A task that waits for the device inside forward cannot be queued ahead. Its samples then include host time, and the fastest quarter of
   them counts.
4. Eager is timed whenever it is asked for. Another baseline of an earlier measurement ("turn") stands, for some minutes, as
   long as eager is what it was then: the GPU has not changed, and neither has the task. Of a turn's rounds the quickest stands.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any, Callable

import torch

from . import dynamo
from .fault import Fault, machine, memory_is_finite, use
from .truth import SETTINGS, set_arithmetic

COMPILED = {"compile": None, "autotune": "max-autotune"}  # modes of torch.compile
NAMES = ("eager", "graph", *COMPILED, *SETTINGS)
MOST = 10000
LEAST = 5
WARM_UP = 2
KEPT_S = 600.0
STEADY = 0.01
CYCLES_PER_US = 2000  # a little more than any clock: the wait may be longer, not shorter
MOST_WAIT_US = 5000.0


def baseline(session: Any, request: dict[str, Any]) -> dict[str, Any]:
    """{"cold_us": [...], "warm_us": [...]} of one way to run the task as it is loaded."""
    name = request.get("name", "eager")
    if name not in NAMES:
        raise use(f"no baseline {name!r}", "one of: " + ", ".join(NAMES))
    if session.device.type != "cuda":
        raise use("baselines are timed on a CUDA device", "load the task with device cuda:0")
    cold, warm = (min(int(request.get(key, 20)), MOST) for key in ("cold", "warm"))
    turn, budget = str(request.get("turn", "")), float(request.get("budget_ms") or 0) * 1000.0
    kept = _kept(session, name, turn)
    if kept:
        return kept
    with memory_is_finite("the baseline"), torch.cuda.device(session.device), torch.no_grad(), arithmetic(session, name), statistics_stay(session):
        call = _prepared(session, name)
        flush = session.flush = session.flush or _flusher(session.device)
        about = _about(call)
        answer = {
            "name": name,
            "cold_us": _times(call, _affordable(cold, about, budget / 2), flush),
            "warm_us": _times(call, _affordable(warm, about, budget / 2), None),
        }
    if session.plan:  # its results are as large as the task
        del call
        session.baselines = {kept: call for kept, call in session.baselines.items() if kept in COMPILED}
        session.give_back()
    _keep(session, name, turn, answer)
    return answer


@contextlib.contextmanager
def arithmetic(session: Any, name: str) -> Iterator[None]:
    """Inside, PyTorch computes as the baseline's name says, or as the task was loaded if the name is not a setting."""
    set_arithmetic(*SETTINGS.get(name, session.tf32))
    try:
        yield
    finally:
        set_arithmetic(*session.tf32)


@contextlib.contextmanager
def statistics_stay(session: Any) -> Iterator[None]:
    """A batch norm in training mode changes its running statistics, which are inputs of the candidate: restores them."""
    drawn = session.draw_now
    held = [(b, b.clone()) for b in drawn.model.buffers()] if drawn else []
    try:
        yield
    finally:
        for buffer, value in held:
            buffer.copy_(value)


def _affordable(count: int, about_us: float, budget_us: float) -> int:
    return min(count, max(LEAST, int(budget_us / max(about_us, 1.0)))) if budget_us else count


def _keep(session: Any, name: str, turn: str, answer: dict[str, Any]) -> None:
    """For a later turn. A round that something disturbed does not displace a better one of its own turn."""
    its_turn, _, _, before = session.timed.get(name, ("", 0.0, 0.0, {"cold_us": []}))
    kept = answer
    if name != "eager" and turn and its_turn == turn and before["cold_us"] and answer["cold_us"]:
        kept = min(before, answer, key=lambda a: statistics.median(a["cold_us"]))
    session.timed[name] = (turn, time.monotonic(), _eager_now(session, name, answer), kept)


def _eager_now(session: Any, name: str, answer: dict[str, Any]) -> float:
    """Eager's current median; 0 when it was not timed or not cold."""
    samples = answer["cold_us"] if name == "eager" else session.timed.get("eager", (0, 0, 0, {"cold_us": []}))[3]["cold_us"]
    return statistics.median(samples) if samples else 0.0


def _kept(session: Any, name: str, turn: str) -> dict[str, Any] | None:
    """An earlier turn's measurement, if it is still valid."""
    if name == "eager" or not turn or name not in session.timed or "eager" not in session.timed:
        return None
    its_turn, when, eager_then, answer = session.timed[name]
    eager_turn, _, eager_now, _ = session.timed["eager"]
    if its_turn == turn or eager_turn != turn or time.monotonic() - when > KEPT_S:
        return None
    return {**answer, "kept": True} if abs(eager_now - eager_then) <= STEADY * eager_then else None


def _prepared(session: Any, name: str) -> Callable[[], Any]:
    """The call, ready to be timed; kept with the session so that a second request does not compile again."""
    drawn = session.draw_now
    if name in COMPILED and name in session.baselines and drawn:
        session.baselines[name].bind(drawn)
    if name not in session.baselines:
        drawn = drawn or session.make("baseline", "task")
        args, kwargs = drawn.arguments.with_tensors(drawn.tensors)
        model = drawn.model
        makers = {
            "eager": lambda: lambda: model(*args, **kwargs),
            "graph": lambda: _captured(lambda: model(*args, **kwargs)),
        }
        if name in COMPILED:
            session.baselines[name] = Compiled(drawn, COMPILED[name])
        else:
            session.baselines[name] = makers["graph" if name == "graph" else "eager"]()
    return session.baselines[name]


def _captured(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call as a CUDA graph on fixed inputs."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            kept = call()
    except RuntimeError as err:
        raise use(
            f"the task cannot be captured in a CUDA graph: {str(err).splitlines()[0]}",
            "leave this baseline out",
        ) from err

    def replay(_kept: Any = kept) -> None:
        graph.replay()

    return replay


def _compile_here() -> None:
    """No processes beside this one: theirs need semaphores in /dev/shm, which the confinement keeps, and they would outlive the compile."""
    import torch._inductor.config as inductor

    inductor.compile_threads = 1


class Compiled:
    """torch.compile's code for the task. It outlives draws, so it holds none: bind() names the one that is timed."""

    def __init__(self, drawn: Any, mode: str | None = None) -> None:
        if not hasattr(torch, "compile"):
            raise machine(f"torch {torch.__version__} has no torch.compile", "PyTorch 2 has it")
        self.model = drawn.model
        self.bind(drawn)
        try:
            _compile_here()
            dynamo.used()
            self.code = torch.compile(self.model, mode=mode)
            self()
        except Fault:
            raise
        except Exception as err:
            raise machine(
                f"torch.compile fails: {type(err).__name__}: {(str(err).splitlines() or [''])[0]}",
                "it needs triton and a C compiler",
            ) from err

    def bind(self, drawn: Any) -> None:
        self.model.to(drawn.tensors[0].device if drawn.tensors else "cuda")
        self.arguments = drawn.arguments.with_tensors(drawn.tensors)

    def rest(self, drawn: Any = None) -> None:
        """Holds no device memory: parameters wait on the host, but those of `drawn`, the model that a candidate is compared with."""
        self.arguments = ((), {})
        if self.model is not drawn:
            self.model.to("cpu")

    def __call__(self) -> Any:
        args, kwargs = self.arguments
        return self.code(*args, **kwargs)


def _flusher(device: torch.device) -> Callable[[], Any]:
    """Reads more than the L2 holds."""
    properties = torch.cuda.get_device_properties(device)
    size = max(getattr(properties, "L2_cache_size", 64 << 20), 32 << 20) * 3
    buffer = torch.zeros(size // 4, dtype=torch.int32, device=device)
    sink = torch.empty((), dtype=torch.int32, device=device)

    def flush() -> None:
        torch.amax(buffer, dim=(0,), out=sink)

    return flush


def _about(call: Callable[[], Any]) -> float:
    """Microseconds that a run takes, of the device or of the host."""
    us, _, host = _series(call, 1, None, 0.0)[0]
    return max(us, host)


def _times(call: Callable[[], Any], count: int, flush: Callable[[], Any] | None) -> list[float]:
    """Microseconds of the runs that include no host time; of the fastest quarter if too few are such."""
    runs = _series(call, count, flush, 0.0)
    ahead = [us for us, queued, _ in runs if queued]
    if 2 * len(ahead) >= count:
        return ahead
    wait = min(2.0 * max(host for _, _, host in _without_worst(runs)) + 20.0, MOST_WAIT_US)
    ahead += [us for us, queued, _ in _series(call, count, flush, wait) if queued]
    if 2 * len(ahead) >= min(count, LEAST):
        return ahead
    return sorted(us for us, _, _ in runs)[: max(count // 4, 1)]


def _without_worst(runs: list[tuple[float, bool, float]]) -> list[tuple[float, bool, float]]:
    """All but the tenth that took the host longest: a hiccup is not a measure for a wait."""
    return sorted(runs, key=lambda run: run[2])[: max(len(runs) - len(runs) // 10, 1)]


def _series(call: Callable[[], Any], count: int, flush: Callable[[], Any] | None, wait_us: float) -> list[tuple[float, bool, float]]:
    """(us on the device, was it queued before the device came to it, us it took the host to queue) of each run."""
    pairs = [
        (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)
    ]
    queued, host = [], []
    torch.cuda.synchronize()
    for _ in range(WARM_UP):  # not waited for: while the device is at them the host gets ahead
        call()
    for begin, end in pairs:
        if flush:
            flush()
        if wait_us:
            torch.cuda._sleep(int(wait_us * CYCLES_PER_US))
        begin.record()
        start = time.perf_counter()
        call()
        end.record()
        host.append(1e6 * (time.perf_counter() - start))
        queued.append(not begin.query())
    torch.cuda.synchronize()
    return [(1000.0 * b.elapsed_time(e), q, h) for (b, e), q, h in zip(pairs, queued, host)]
