"""The built-in engineer's memory-bound kernels on a GPU, judged by `cutegen`: one row per task.

    python3 bench/gpu/memory.py CUTEGEN EXAMPLES OUT [--ladder PROGRAM | --kernels DIR] [--no-compile] [TASK...]

The engineer climbs its ladder on the GPU (`cutegen run`) and the best kernel counts. With --ladder (expert_ladder, built
by `ninja -C build/release tests/expert/expert_ladder`) the end of the ladder without the steps that try launch shapes is
judged by `cutegen eval`, which takes seconds per row; with --kernels, DIR/TASK.cu is. Eager is timed by the judge in the
same minutes; torch.compile beside eager in processes of their own (`--compile-only` is one), kept in OUT/compile.json and
read from there if it is there. OUT/memory.json has everything, OUT/memory.md the table.
"""
import argparse
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

ACTIVATIONS = "relu leaky_relu sigmoid tanh gelu selu hard_sigmoid softplus elu hard_tanh swish softsign".split()
ISSUE = "softmax log_softmax matrix_scalar matvec diagonal_matmul layer_norm_3d rms_norm max_dim cross_entropy cumsum".split()
ALONGS = [f"{op}_dim{dim}" for op in ("sum", "mean", "min", "argmax") for dim in range(3)]
OTHERS = "group_norm instance_norm batch_norm layer_norm row_sum gelu_tanh kl_div hinge_loss mse_loss".split() + ALONGS


NORMS = "layer_norm rms_norm group_norm instance_norm batch_norm softmax log_softmax".split()
HALVES = [f"{task}_{dtype}" for task in ACTIVATIONS + NORMS for dtype in ("f16", "bf16")]
LEAST = {
    **dict.fromkeys(ACTIVATIONS, 0.995),
    "swish": 2.42, "softsign": 3.4, "softmax": 1.88, "log_softmax": 1.88, "matrix_scalar": 0.995, "matvec": 1.16,
    "diagonal_matmul": 65, "layer_norm_3d": 34, "rms_norm": 3.0, "max_dim": 1.35, "cross_entropy": 2.9, "cumsum": 2.1,
    **dict.fromkeys(HALVES, 0.99),
}
PROCESSES = 12  # that compile at once
HALF = """

class Half(Model):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.to({dtype})


Model, get_full = Half, get_inputs


def get_inputs():
    return [x.to({dtype}) for x in get_full()]
"""

ALONG = """import torch
import torch.nn as nn

BATCH = 128
DIM1 = 4096
DIM2 = 4095


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.{op}(x, dim={dim}){part}


def get_inputs():
    return [torch.rand(BATCH, DIM1, DIM2)]


def get_init_inputs():
    return []
"""


def task_path(args, task):
    """An example, a task of this bench, or written here: OP_dimD along a dimension, NAME_f16 and NAME_bf16 in that dtype."""
    path = pathlib.Path(args.examples, f"{task}.py")
    name, _, dtype = task.rpartition("_")
    if task in ALONGS:
        path = pathlib.Path(args.out, f"{task}.py")
        path.write_text(ALONG.format(op=name, dim=dtype[3:], part="[0]" if name == "min" else ""))
    if dtype in ("f16", "bf16"):
        path = pathlib.Path(args.out, f"{task}.py")
        text = pathlib.Path(args.examples, f"{name}.py").read_text()
        path.write_text(text + HALF.format(dtype={"f16": "torch.float16", "bf16": "torch.bfloat16"}[dtype]))
    return str(path if path.exists() else pathlib.Path(__file__).resolve().parent / "tasks" / f"{task}.py")


def load(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def climb(args, path, task):
    """The kernel at the end of the ladder, the steps that only try launch shapes left out."""
    words = [args.cutegen, "describe", path, "--device", "cuda:0", "--json", "--python", sys.executable]
    described = pathlib.Path(args.out, f"{task}.json")
    described.write_text(subprocess.run(words, capture_output=True, text=True, timeout=100).stdout)
    root = pathlib.Path(args.cutegen).resolve().parent.parent  # its libraries, where the machine has none
    env = {**os.environ, "CUTEGEN_HOME": str(pathlib.Path(args.examples).resolve().parent), "LD_LIBRARY_PATH": str(root / "lib")}
    words = [args.ladder, described, args.out, "sm_90a"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env)
    steps = [line.partition(": CHANGE: ") for line in done.stdout.splitlines() if ": CHANGE: " in line]
    depth = max(int(name.split()[-1]) for name, _, change in steps if not change.startswith("try "))
    return pathlib.Path(args.out, f"{json.loads(described.read_text())['name']}.{depth}.cu")


def judge(args, task):
    """The judge's JSON for a task."""
    path = task_path(args, task)
    if args.kernels:
        words = ["eval", path, f"{args.kernels}/{task}.cu"]
    elif args.ladder:
        words = ["eval", path, climb(args, path, task)]
    else:
        words = ["run", path]
    start = time.time()
    words += ["--device", "cuda:0", "--json", "--python", sys.executable]
    done = subprocess.run([args.cutegen, *words], capture_output=True, text=True, timeout=170)
    if "has no torch" in done.stdout:  # of the server's Python: do without
        done = subprocess.run([args.cutegen, *words, "--no-server"], capture_output=True, text=True, timeout=170)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    answer = json.loads(lines[-1]) if lines else {"error": done.stderr[-400:]}
    answer["seconds"] = time.time() - start
    return answer


def row(task, answer, compiled):
    """One line of the table."""
    time_of = answer.get("measurement") or answer.get("best") or {}
    if not time_of.get("time_us"):
        return f"| {task} | {answer.get('verdict') or answer.get('error', {})} | | | | | | |"
    us, accuracy = time_of["time_us"], answer.get("accuracy") or {}
    eager = next((b["cold_us"] for b in time_of["baselines"] if b["name"] == "eager"), 0)
    error = f"{accuracy.get('max_rel', 0):.1e} / {accuracy.get('reference', {}).get('max_rel', 0):.1e}"
    rms = f"{accuracy.get('rms_rel', 0):.1e} / {accuracy.get('reference', {}).get('rms_rel', 0):.1e}"
    other, over = "-", "-"
    if task in compiled:
        ratio = compiled[task]["eager"] / compiled[task]["compile"]
        other, over = f"{ratio:.3f}", f"{eager / us / ratio:.3f}"
    return (
        f"| {task} | {us:.1f} | {eager / us:.3f} | {LEAST.get(task, 1)} | {other} | {over} "
        f"| {100 * time_of['floor_us'] / us:.1f} % | {rms} | {error} |"
    )


def cold_ms(call, flush, runs=11):
    import torch

    times = []
    for i in range(runs + 2):
        torch.cuda._sleep(1 << 20)  # so long that the launches below are queued before the first begins
        flush.sum()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if i > 1:
            times.append(begin.elapsed_time(end))
    return sorted(times)[runs // 2]


def on_device(module):
    import torch

    return [x.cuda() if isinstance(x, torch.Tensor) else x for x in module.get_inputs()]


def compile_only(args):
    """Compiles the tasks and says so; told to go on, times them: a line of JSON each."""
    import torch

    ready = {}
    with torch.no_grad(), torch.device("cuda"):
        for task in args.tasks:
            try:
                module = load(task_path(args, task))
                model = module.Model(*module.get_init_inputs())
                fast = torch.compile(model)
                fast(*on_device(module))
                ready[task] = (module, model, fast)
            except Exception as why:  # a task it cannot compile is left out
                print(task, str(why)[:200], file=sys.stderr)
            torch.cuda.empty_cache()
        print("ready", flush=True)
        sys.stdin.readline()
        flush = torch.zeros(64 << 20)
        for task, (module, model, fast) in ready.items():
            inputs = on_device(module)
            times = [cold_ms(lambda: call(*inputs), flush) for call in (model, fast)]
            print(json.dumps({task: {"eager": times[0], "compile": times[1]}}), flush=True)
            del inputs
            torch.cuda.empty_cache()


def compile_times(args):
    """{"task": {"eager": ms, "compile": ms}}: compiled by several processes at once, timed by one after the other."""
    kept = pathlib.Path(args.out, "compile.json")
    if kept.exists():
        return json.loads(kept.read_text())
    word = [sys.executable, __file__, args.cutegen, args.examples, args.out, "--compile-only"]
    parts = [part for part in (args.tasks[i::PROCESSES] for i in range(PROCESSES)) if part]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen([*word, *part], **pipes) for part in parts]
    for worker in workers:
        worker.stdout.readline()
    times = {}
    for worker in workers:
        try:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        except BrokenPipeError:  # it has died, and said why
            continue
        for line in worker.stdout:
            if line.startswith("{"):
                times.update(json.loads(line))
                kept.write_text(json.dumps(times))
        worker.wait()
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cutegen")
    parser.add_argument("examples")
    parser.add_argument("out")
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--jobs", type=int, default=1, help="builds side by side; the GPU is taken in turn")
    parser.add_argument("--kernels")
    parser.add_argument("--ladder")
    parser.add_argument("--no-judge", action="store_true", help="only torch.compile's times")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_intermixed_args()
    args.tasks = args.tasks or ACTIVATIONS + ISSUE + OTHERS + HALVES
    if args.compile_only:
        return compile_only(args)
    compiled = {} if args.no_compile else compile_times(args)
    if args.no_judge:
        return None
    head = "| task | us | x eager | at least | torch.compile x eager | x torch.compile | of the limit "
    head += "| rms error / eager's | largest relative / eager's |"
    lines, answers = [head, "|---|---|---|---|---|---|---|---|---|"], {}
    print("\n".join(lines), flush=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        asked = [(task, pool.submit(judge, args, task)) for task in args.tasks]
        for task, asking in asked:
            try:
                answers[task] = asking.result()
            except (subprocess.TimeoutExpired, ValueError) as why:
                answers[task] = {"error": str(why)[:200]}
            lines.append(row(task, answers[task], compiled))
            print(lines[-1], f"{answers[task].get('seconds', 0):.0f} s", flush=True)
            pathlib.Path(args.out, "memory.json").write_text(json.dumps({"compile": compiled, "judged": answers}))
            pathlib.Path(args.out, "memory.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
