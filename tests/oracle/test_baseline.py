"""What is taken for PyTorch's time on a busy host. The device is a made-up one: a queue, two clocks, events.

A test's name is the sentence it proves. All times in microseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

ROOT = os.environ.get("CUTEGEN_ROOT") or str(Path(__file__).resolve().parents[2])
sys.path.insert(0, ROOT)

from oracle import baseline  # noqa: E402

KERNELS = [7.0, 5.0]  # eager's two
FLUSH = 42.0


class Machine:
    """A host that queues and a device that works, each at its own time."""

    def __init__(self, launch: float, hiccup: float = 0.0, waits: bool = False, work: list[float] = KERNELS) -> None:
        self.host = self.device = 0.0
        self.launch, self.hiccup, self.waits, self.work, self.calls = launch, hiccup, waits, work, 0
        machine = self

        class Event:
            def __init__(self, enable_timing: bool = False) -> None:
                self.at = 0.0

            def record(self) -> None:
                machine.queue(0.0, 1.0)
                self.at = machine.device

            def query(self) -> bool:
                machine.host += 0.5
                return machine.host >= self.at

            def elapsed_time(self, other: Event) -> float:
                return (other.at - self.at) / 1000.0

        cuda = types.SimpleNamespace(Event=Event, synchronize=self.synchronize, _sleep=lambda cycles: self.queue(cycles / 1980.0, 5.0))
        self.torch = types.SimpleNamespace(cuda=cuda)
        self.time = types.SimpleNamespace(perf_counter=lambda: self.host / 1e6, monotonic=lambda: self.host / 1e6)

    def queue(self, work: float, cost: float) -> None:
        self.host += cost
        self.device = max(self.host, self.device) + work

    def synchronize(self) -> None:
        self.host = max(self.host, self.device)

    def flush(self) -> None:
        self.queue(FLUSH, 8.0)

    def call(self) -> None:
        self.calls += 1
        for work in self.work:
            self.queue(work, self.launch + (self.hiccup if self.calls % 3 == 0 else 0.0))
        if self.waits:
            self.synchronize()

    def times(self, count: int = 81, cold: bool = True) -> list[float]:
        kept = baseline.torch, baseline.time
        baseline.torch, baseline.time = self.torch, self.time
        try:
            return baseline._times(self.call, count, self.flush if cold else None)
        finally:
            baseline.torch, baseline.time = kept


class Baselines(unittest.TestCase):
    def check(self, machine: Machine, wanted: float, cold: bool = True) -> None:
        times = machine.times(cold=cold)
        self.assertGreaterEqual(len(times), baseline.LEAST)
        for us in times:
            self.assertAlmostEqual(us, wanted, places=6)

    def test_a_quick_host_is_ahead_behind_the_flush_and_nothing_waits(self) -> None:
        machine = Machine(launch=6.0)
        self.check(machine, sum(KERNELS))
        self.assertEqual(machine.calls, 81 + baseline.WARM_UP)

    def test_a_long_run_is_not_timed_twice(self) -> None:
        machine = Machine(launch=6.0, work=[1200.0, 1300.0])
        self.assertEqual([round(us, 6) for us in machine.times(count=5, cold=False)], 5 * [2500.0])
        self.assertEqual(machine.calls, 5 + baseline.WARM_UP)

    def test_a_host_ten_times_as_slow_changes_nothing(self) -> None:
        self.check(Machine(launch=65.0), sum(KERNELS))

    def test_the_hosts_time_is_not_in_a_warm_run_either(self) -> None:
        self.check(Machine(launch=6.0), sum(KERNELS), cold=False)

    def test_a_host_that_stumbles_now_and_then_changes_nothing(self) -> None:
        self.check(Machine(launch=6.0, hiccup=900.0), sum(KERNELS))

    def test_a_task_that_waits_in_forward_has_the_quickest_of_its_times(self) -> None:
        times = Machine(launch=30.0, hiccup=900.0, waits=True).times()
        self.assertLess(max(times), 30.0 + 30.0 + sum(KERNELS))

    def test_a_disturbed_round_is_not_what_later_turns_are_told(self) -> None:
        session: Any = types.SimpleNamespace(timed={})
        for eager, graph in ((12.0, 11.5), (12.0, 11.6), (12.0, 32.0)):
            baseline._keep(session, "eager", "one", {"cold_us": [eager]})
            baseline._keep(session, "graph", "one", {"cold_us": [graph]})
        baseline._keep(session, "eager", "two", {"cold_us": [12.0]})
        kept = baseline._kept(session, "graph", "two")
        self.assertEqual(kept and kept["cold_us"], [11.5])


class Memory(unittest.TestCase):
    def test_a_baseline_without_memory_leaves_the_draw_to_the_candidate(self) -> None:
        from oracle import main
        from oracle.fault import Fault

        def carry_out(doing: str, request: dict[str, Any]) -> dict[str, Any]:
            raise Fault("memory", "no memory", "")

        done: list[str] = []
        oracle = main.Oracle(None)
        oracle.session = types.SimpleNamespace(
            device=types.SimpleNamespace(type="cpu"),
            rest=lambda: done.append("rest"),
            drop_baselines=lambda: done.append("drop baselines"),
        )
        oracle.carry_out = carry_out  # type: ignore[method-assign]
        for doing in ("baseline", "compare"):
            self.assertEqual(main.reply(oracle, f'{{"do": "{doing}"}}')["kind"], "memory")
        self.assertEqual(done, ["drop baselines", "rest"])

    def test_the_model_of_the_draw_stays_on_the_device_when_baselines_are_dropped(self) -> None:
        import torch

        from oracle.session import Session

        models = [torch.nn.Linear(3, 2, device="meta"), torch.nn.Linear(3, 2)]  # of the draw at hand, of an earlier one
        session: Any = types.SimpleNamespace(draw_now=types.SimpleNamespace(model=models[0]), flush=1, give_back=lambda: None)
        session.baselines = {"eager": None}
        for name, model in zip(baseline.COMPILED, models):
            session.baselines[name] = object.__new__(baseline.Compiled)
            session.baselines[name].model = model
        models[1].to = lambda device: done.append(device)  # type: ignore[assignment, method-assign]
        done: list[Any] = []
        Session.drop_baselines(session)
        self.assertEqual([p.device.type for p in models[0].parameters()], ["meta", "meta"])
        self.assertEqual(done, ["cpu"])
        self.assertNotIn("eager", session.baselines)


class Statistics(unittest.TestCase):
    def test_running_statistics_are_the_candidates_inputs_and_stay_as_drawn(self) -> None:
        import torch

        norm = torch.nn.BatchNorm1d(4)
        before = [b.clone() for b in norm.buffers()]
        with baseline.statistics_stay(types.SimpleNamespace(draw_now=types.SimpleNamespace(model=norm))):
            norm(torch.randn(16, 4))
            self.assertFalse(all(torch.equal(b, kept) for b, kept in zip(norm.buffers(), before)))
        self.assertTrue(all(torch.equal(b, kept) for b, kept in zip(norm.buffers(), before)))
        with baseline.statistics_stay(types.SimpleNamespace(draw_now=None)):
            pass


class Imports(unittest.TestCase):
    """In processes of their own: what is imported stays."""

    TASK = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return 1 / (x + 1).sqrt()\n\n\n"
    TASK += "def get_inputs():\n    return [torch.rand(8, 8)]\n\n\ndef get_init_inputs():\n    return []\n"

    def say(self, code: str) -> str:
        import torch

        if not hasattr(torch, "_compile"):
            self.skipTest("this PyTorch has no _compile module")
        with tempfile.NamedTemporaryFile("w", suffix=".py") as task:
            task.write(self.TASK)
            task.flush()
            lines = f"""
import sys, torch
sys.path.insert(0, {ROOT!r})
from oracle import dynamo
from oracle.session import Session
dynamo.unused()
session = Session({{"task": {task.name!r}, "device": "cpu"}})
{code}
"""
            made = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 0, made.stderr[-2000:])
        return made.stdout.strip()

    def test_describing_a_task_imports_no_compiler(self) -> None:
        self.assertEqual(self.say("print('torch._dynamo' in sys.modules)"), "False")

    def test_torch_compile_finds_everything_as_it_was(self) -> None:
        said = self.say("""
dynamo.used()
graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward
model = torch.compile(lambda x: 1 / (x + 1).sqrt() + torch._refs.reciprocal(x), backend=backend)
x = torch.rand(8) + 1
assert torch.equal(model(x), 1 / (x + 1).sqrt() + torch._refs.reciprocal(x))
print([vars(f)[dynamo.WRAPPER] is f for f in dynamo._wrapped() if dynamo.WRAPPER in vars(f)].count(True), len(graphs) > 0)
""")
        self.assertEqual(said, "0 True")


if __name__ == "__main__":
    unittest.main()
