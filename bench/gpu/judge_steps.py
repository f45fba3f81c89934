"""Where a judgement's time and device memory go: the oracle's steps, one by one, in this process. Needs a GPU.

    python3 bench/gpu/judge_steps.py TASK...

Every draw of a test is made, answered by PyTorch itself and compared, as the judge does it. One line per step: seconds,
and the most device memory that was taken while it ran (all of the GPU's, the driver's own included).
"""
import functools
import os
import pathlib
import sys
import tempfile
import threading
import time

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:1024"  # as oracle/main.py
sys.path.insert(0, os.environ.get("CUTEGEN_HOME") or str(pathlib.Path(__file__).resolve().parent.parent.parent))
import torch  # noqa: E402

from oracle import baseline, compare_parts, session, trivial  # noqa: E402

DISTRIBUTIONS = ("task", "normal", "wide", "mixed", "zeros")
PARTS = ("make", "reference", "answers", "noise")  # answers: reference and truth
SPENT: dict[str, float] = {}


class Peak:
    """The least free memory seen, every other millisecond."""

    def __enter__(self):
        self.least, self.going = torch.cuda.mem_get_info()[0], True
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def _watch(self):
        while self.going:
            self.least = min(self.least, torch.cuda.mem_get_info()[0])
            time.sleep(0.002)

    def __exit__(self, *_):
        self.going = False
        self.thread.join()

    def taken(self):
        return (torch.cuda.mem_get_info()[1] - self.least) / 1e9


def timed(owner, name):
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def call(*args, **kwargs):
        torch.cuda.synchronize()
        start = time.time()
        try:
            return inner(*args, **kwargs)
        finally:
            torch.cuda.synchronize()
            SPENT[name] = SPENT.get(name, 0.0) + time.time() - start

    setattr(owner, name, call)


def step(name, function):
    SPENT.clear()
    with Peak() as peak:
        start = time.time()
        answer = function()
        torch.cuda.synchronize()
        seconds = time.time() - start
    inside = ", ".join(f"{k} {v:.2f}" for k, v in SPENT.items())
    print(f"{name:28} {seconds:7.2f} s {peak.taken():7.1f} GB   {inside}", flush=True)
    return answer


def judge(path):
    request = {"task": path, "device": "cuda:0", "work": tempfile.mkdtemp()}
    print(path, flush=True)
    one = step("load", lambda: session.Session(request))
    step("wake", lambda: one.wake(request))
    for number, distribution in enumerate(DISTRIBUTIONS):
        asked = {"seed": f"{number:x}", "distribution": distribution, "shift": number, "stale": number == 2}
        step(f"draw {distribution}", lambda a=asked: one.draw(a))
        step("run", one.write_reference)
        answer = step(f"compare {distribution}", one.compare)
        bad = [o for o in answer["outputs"] if o["wrong"] or o["imprecise"]]
        if bad or answer["inputs_modified"]:
            print(f"  not right: {bad} {answer['inputs_modified']}")
        print(f"  way: {answer.get('way', 'whole')}", flush=True)
    for name in ("eager", "graph"):
        step(name, lambda n=name: baseline.baseline(one, {"name": n, "cold": 20, "warm": 20, "budget_ms": 250}))
    step("rest", one.rest)
    one.release()


def main():
    for name in PARTS:
        timed(session.Session, name)
    for name in ("fingerprints", "copied", "measure_quickly", "forgive", "planted", "redraw", "lean"):  # of tasks that are judged in parts
        timed(compare_parts, name)
    timed(trivial.Standing, "narrow")
    timed(session.Session, "give_back")
    timed(session, "compare_output")
    timed(session, "run_double")
    for path in sys.argv[1:]:
        judge(path)


if __name__ == "__main__":
    main()
