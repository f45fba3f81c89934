#!/usr/bin/env python3
"""api_test.py CUTEGEN - import cutegen: tracing, judge(), optimize(), runs() and the backend, on simt. Prints TAP.

Kernels are the built-in engineer's first ones (depth 0): what is tested is the road to and from the program.
"""

import copy
import os
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
WORK = tempfile.TemporaryDirectory(prefix="cutegen-api-test-")
os.environ.update(CUTEGEN_PROGRAM=os.path.abspath(sys.argv[1]), CUTEGEN_CACHE=WORK.name + "/cache", CUTEGEN_RUNS=WORK.name + "/runs",
                  CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", WORK.name + "/rt"))  # the suite's warm server
os.environ.setdefault("CUTEGEN_PYTHON", sys.executable)

import cutegen  # noqa: E402
import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from cutegen import optimized, trace  # noqa: E402
from cutegen.trace import Untraceable, task_of  # noqa: E402

count = 0
failed = 0


def ok(what, good, told=""):
    global count, failed
    count += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {count} - {what}", flush=True)
    if not good:
        print(f"#   {told}", flush=True)


def skip(what, why):
    global count
    count += 1
    print(f"ok {count} - {what} # SKIP {why}", flush=True)


class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up = nn.LayerNorm(24), nn.Linear(24, 40)
        self.register_buffer("mask", torch.tril(torch.ones(40, 40)).bool())

    def forward(self, x, scale=2.0):
        y = F.gelu(self.up(self.norm(x)))
        return {"y": y * scale, "m": (y @ self.mask.to(y.dtype), y.sum())}


class Product(nn.Module):
    def forward(self, x, y):
        return x @ y.t()


class Broken(nn.Module):
    def forward(self, x):
        return x[:1] if x.sum() > 0 else x


class Writes(nn.Module):
    def forward(self, x):
        return x.add_(1)


def run_task(source, tensors):
    """What a task file computes with these inputs and weights."""
    space = {}
    exec(compile(source, "task.py", "exec"), space)
    model = space["Model"]()
    drawn = space["get_inputs"]()
    inputs, held = tensors[: len(drawn)], tensors[len(drawn) :]
    same = all(a.shape == b.shape and a.dtype == b.dtype and a.stride() == b.stride() for a, b in zip(drawn, inputs))
    with torch.no_grad():
        for parameter, value in zip(model.parameters(), held):
            parameter.copy_(value)
    return model(*inputs), same


def tracing():
    torch.manual_seed(0)
    block, x = Block().eval(), torch.randn(8, 24)
    task, _ = task_of(block, (x,))
    state = [*dict(block.named_parameters()).values(), *dict(block.named_buffers()).values()]
    made, same = run_task(task.source, [([x] + state)[i] for i in task.inputs])
    want = block(x)
    flat = [want["y"], *want["m"]]
    ok("a traced module computes the same, nested results and masks too", all(torch.allclose(a, b, atol=1e-5) for a, b in zip(made, flat)))
    ok("what is drawn has the same shapes, types and strides", same)
    other = Block().eval()
    ok("other weights have the same key", task_of(other, (torch.randn(8, 24),))[0].key == task.key)
    ok("another shape has another key", task_of(block, (torch.randn(9, 24),))[0].key != task.key)
    ok("another plain argument has another key", task_of(block, (x, 3.0))[0].key != task.key)
    turned = task_of(Swish(), (torch.randn(6, 10).t(),))[0]
    twice = task_of(Product(), (x, x))[0]
    ok("a tensor that is given twice is two inputs", twice.inputs == [0, 1], twice.source)
    ok("strides are kept", run_task(turned.source, [torch.randn(6, 10).t()])[1], turned.source)
    for module, inputs, words in (
        (Broken(), (torch.randn(4, 4),), "cannot be traced"),
        (Writes(), (torch.randn(4, 4),), "writes into"),
        (Swish(), (torch.zeros(0, 4),), "empty"),
    ):
        try:
            task_of(module, inputs)
            said = "it was traced"
        except Untraceable as why:
            said = str(why)
        ok(f"{type(module).__name__}: refused ({words})", words in said, said)


def judging():
    task = os.path.join(ROOT, "examples", "swish.py")
    with open(os.path.join(ROOT, "examples", "kernels", "swish.cu"), encoding="utf-8") as file:
        source = file.read()
    wrong = cutegen.judge(task, source.replace("{", "{ nonsense", 1), device="simt")
    ok("a kernel that does not compile is a verdict", not wrong and wrong.kind == "compile error", wrong)
    ok("with findings, and a page for a notebook", bool(wrong.findings) and "compile error" in wrong._repr_html_())
    try:
        cutegen.judge(task, source, no_such_flag=3)
        said = "it was judged"
    except cutegen.CutegenError as error:
        said = f"{error.kind} {error.exit}"
    ok("an unknown setting is an error of use", said == "use 2", said)
    told = cutegen.describe(Swish(), (torch.randn(4, 8),))
    ok("a module is described", told["class"] == "pointwise" and told["inputs"][0]["shape"] == [4, 8], told)


class Partly(nn.Module):
    def forward(self, x):
        return x * 2, None, 3


class Told:
    """An export whose kernel gives back what it was called with."""

    outputs = 1
    inputs, shapes, dtypes = [0, 1], [torch.Size([2, 4]), torch.Size([4, 4])], [torch.float32] * 2

    @staticmethod
    def run(*tensors):
        return tensors

    operator = run


def calling():
    """Which calls of an optimized module reach the kernel, and with which tensors."""
    module, x = nn.Linear(4, 4, bias=False), torch.randn(2, 4)
    kept, optimized.load = optimized.load, lambda outcome: Told
    fast = optimized.Optimized(module, "simt")
    given = trace.flatten((x,), {})
    fast._cases.append(optimized._Case(Told, None, given, trace.Returned(trace.flatten((x,), {}).spec, [None], [True]), module))
    fast._cases[0].one = True
    optimized.load = kept
    module.weight = nn.Parameter(torch.ones(4, 4))
    got = fast(x)
    ok("a parameter that was replaced is the one the kernel gets", got[0] is x and got[1] is module.weight)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        calls = [fast(torch.ones(3, 4)), fast(x[:1])]
        module.eval()
        calls.append(fast(x))
    ok("other shapes and another mode run the original", all(torch.is_tensor(c) for c in calls) and len(heard) == 1, calls)
    module.train()
    copied = copy.deepcopy(fast)
    ok("a copy has a kernel with its own weights", copied(x)[1] is copied.original.weight, copied(x))
    with torch.autocast("cpu", torch.bfloat16):
        ok("under autocast the original runs", torch.is_tensor(fast(x)) and fast(x).dtype == torch.bfloat16)
    module.in_features = 5
    ok("a changed attribute too, and it is named", torch.is_tensor(fast(x)) and "in_features" in fast._cases[0].unlike(), fast._cases[0].unlike())
    module.in_features, seen = 4, []
    hook = module.register_forward_hook(lambda *told: seen.append(told))
    ok("and a module with hooks, which are called", torch.is_tensor(fast(x)) and len(seen) == 1, seen)
    hook.remove()
    ok("then it is the kernel again", not torch.is_tensor(fast(x)))
    returned = trace.task_of(Partly(), (x,))[1]
    ok("plain values among results stay where they are", returned.nested([x]) == (x, None, 3), returned)


def poisoned(folder):
    """Whoever changes a cached export is not believed: its Python would run here."""
    from cutegen import kernels

    key, export = os.path.basename(folder), os.path.join(folder, "export")
    loader, pycache = os.path.join(export, "loader.py"), os.path.join(export, "__pycache__")
    sealed, whole = os.path.join(os.path.dirname(os.path.dirname(folder)), "seal.key"), folder + ".whole"
    other = os.path.join(os.path.dirname(folder), "0" * 40)

    def written(path, text="raise SystemExit('poisoned')\n"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "a", encoding="utf-8") as file:
            file.write(text)

    def flipped(path):
        with open(path, "r+", encoding="utf-8") as file:
            first = file.read(1)
            file.seek(0)
            file.write("1" if first == "0" else "0")

    def linked():
        os.rename(loader, loader + ".txt")
        os.symlink(loader + ".txt", loader)

    attacks = {
        "a loader with a line more": lambda: written(loader),
        "a task with a line more": lambda: written(os.path.join(export, "reference.py")),
        "bytecode that Python would take instead": lambda: written(os.path.join(pycache, f"loader.{sys.implementation.cache_tag}.pyc")),
        "a file more": lambda: written(os.path.join(export, "torch.py")),
        "a file less": lambda: os.remove(os.path.join(export, "gradients.py")),
        "a link in place of a file": linked,
        "a folder that is a link": lambda: os.symlink("/tmp", os.path.join(export, "more")),
        "no seal": lambda: os.remove(os.path.join(folder, "seal")),
        "another seal": lambda: flipped(os.path.join(folder, "seal")),
        "a seal that is empty": lambda: open(os.path.join(folder, "seal"), "w", encoding="utf-8").close(),
    }
    ok("the seal of a cached kernel holds, and loading wrote nothing", kernels.kept(key) is not None and not os.path.exists(pycache))
    shutil.copytree(folder, whole, symlinks=True)
    for name, attack in attacks.items():
        attack()
        ok("not believed: " + name, kernels.kept(key) is None)
        shutil.rmtree(folder)
        shutil.copytree(whole, folder, symlinks=True)
    shutil.copytree(folder, other)
    ok("not believed: the kernel of another task", kernels.kept("0" * 40) is None)
    os.chmod(sealed, 0o644)
    ok("not believed: a key that others can read", kernels.kept(key) is None)
    os.chmod(sealed, 0o600)
    ok("and believed again when all is as it was", kernels.kept(key) is not None)
    shutil.rmtree(whole)
    shutil.rmtree(other)


def optimizing():
    x = torch.randn(16, 32)
    fast = cutegen.optimize(Swish(), (x,), depth=0, progress=False)
    ok("a module is optimized", fast.optimized, fast.verdict)
    ok("it gives the module's results", torch.allclose(fast(x), Swish()(x), atol=1e-6))
    ok("the verdict says that its time is modelled", "modelled" in fast.verdict and fast.speedup is None, fast.verdict)
    picture = fast._repr_html_()
    ok("a notebook gets the trajectory", re.search(r"<svg .*<circle .*</svg>", picture, re.S) is not None, picture[:300])
    again = cutegen.optimize(Swish(), (torch.randn(16, 32),), depth=0, progress=False)
    ok("the second time it comes from the cache", again.optimized and again.outcomes[0].cached)
    poisoned(os.path.dirname(again.outcomes[0].folder))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        other = fast(torch.ones(3, 5))
    ok("another shape runs the original, and says so", torch.equal(other, Swish()(torch.ones(3, 5))) and "no kernel was judged" in str(heard[-1].message))
    left = cutegen.optimize(Broken(), (x,), progress=False)
    ok("what cannot be traced stays as it is, and says why", not left.optimized and "cannot be traced" in left.verdict and left(x).shape[1] == 32)
    try:
        cutegen.optimize(Swish(), (x,), progress=False, no_such_flag=3)
        said = "it was run"
    except cutegen.CutegenError as error:
        said = error.kind
    ok("an unknown setting is an error, not a module left alone", said == "use", said)
    rows = cutegen.runs()
    ok("runs are rows", rows.total >= 1 and {r["task"] for r in rows} >= {"swish"} and "<table>" in rows._repr_html_(), rows)
    weight = x.clone().requires_grad_()
    fast(weight).sum().backward()
    want = x.clone().requires_grad_()
    Swish()(want).sum().backward()
    ok("gradients are the module's", torch.allclose(weight.grad, want.grad, atol=1e-5))


class Writes2(nn.Module):
    def forward(self, x):
        return x.view(-1).add_(1) * 2


class Broken2(nn.Module):
    """Two graphs: the print between them cannot be compiled."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(16, 24)

    def forward(self, x):
        y = torch.relu(self.up(x))
        torch._dynamo.graph_break()
        return y.cumsum(1).sort(dim=1)[0]


class Chain(nn.Module):
    """Two parts, the second of which reads the first's result."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.down(torch.relu(self.up(x)))), x


class Between(nn.Module):
    """Its input is written between a product and what follows it."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x):
        y = self.up(x)
        x.add_(1)
        return torch.relu(y)


class Kernel:
    """An export of linear and relu."""

    @staticmethod
    def run(x, weight, bias):
        return torch.relu(F.linear(x, weight, bias))

    operator = run


def choosing():
    """What is taken, with kernels that are PyTorch's and times that are given."""
    from cutegen import compiled, groups

    module, x, made = Chain(), torch.randn(4, 8), {}
    kept = compiled.timed

    def backend(graph, inputs):
        parts = {i: (g, g.task(), Kernel) for i, g in enumerate(groups.groups_of(graph, inputs))}
        ways, plan = compiled._Ways(graph, inputs, compiled._Rest(None), None, parts), compiled.Plan("", "")
        run = ways.chosen(plan, torch.device("cuda"))
        made[len(made)] = plan
        return run or graph.forward

    def chosen(**times):
        compiled.timed = lambda ways, place, before: {name: [run() or times.get(name.split()[0], 10)] * 3 for name, run in ways.items()}
        torch._dynamo.reset()
        with torch.no_grad():
            got, want = torch.compile(module, backend=backend)(x), module(x)
        return made[len(made) - 1], torch.allclose(got[0], want[0], atol=1e-6) and got[1] is x

    plan, right = chosen(direct=5, inductor=6, without=11)
    ok("the fastest way is taken, a part may read another's result", right and plan.take == "direct" and plan.parts == [0, 1], plan)
    plan, right = chosen(direct=5, inductor=4, without=11)
    ok("also where that is Inductor around the kernels", right and plan.take == "inductor", plan)
    plan, right = chosen(direct=5, inductor=6, without=9)
    ok("a part that gains nothing is left", right and plan.parts == [1] and "no gain" in plan.left[0], plan)
    plan, right = chosen(direct=9.9, inductor=9.9, without=11)
    ok("what is not faster is not taken", right and plan.take == "nothing", plan)
    compiled.timed = kept
    torch._dynamo.reset()
    seen = []
    torch.compile(Between(), backend=lambda graph, inputs: seen.extend(groups.groups_of(graph, inputs)) or graph.forward)(x)
    ok("a part does not reach over a write", [g.text for g in seen] == ["linear"], seen)


def compiling():
    from cutegen import compiled, groups

    module, x = Broken2().eval(), torch.randn(8, 16)
    options = {"depth": 0, "progress": False}
    groups.WHOLE_LIMIT, whole = 2, groups.WHOLE_LIMIT  # the second graph is larger: its groups are tried alone
    fast = torch.compile(module, backend=cutegen.backend, options=options)
    with torch.no_grad():
        made = fast(x)
        ok("a compiled module gives the same results", torch.allclose(made, module(x), atol=1e-5), (made - module(x)).abs().max())
        plans = compiled.report()
        ok("graph breaks: each graph is compiled for itself", len(plans) == 2, plans)
        ok("a subgraph with a verified kernel is replaced", any("linear" in r for r in plans[0].replaced), plans)
        ok("and one inside a larger graph", plans[1].take == "direct" and plans[1].replaced == ["cumsum"], plans)
        torch._dynamo.reset()
        torch.compile(module, backend=cutegen.backend, options=options)(x)
        ok("the second start comes from the cache", all(p.cached for p in compiled.report()[2:]) and len(compiled.report()) == 4)
        ok("another size is left to PyTorch", torch.allclose(fast(x[:5]), module(x[:5]), atol=1e-5))
    fast(x).sum().backward()
    ok("gradients flow", module.up.weight.grad is not None and bool(module.up.weight.grad.abs().sum() > 0))
    groups.WHOLE_LIMIT = whole
    torch._dynamo.reset()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        made = torch.compile(nn.Linear(16, 8), backend=cutegen.backend, options=options)(x)
    ok("autocast: its type, by a kernel of its own", made.dtype == torch.bfloat16 and not compiled.report()[-1].cached, compiled.report()[-1])
    torch._dynamo.reset()
    norm, mine, theirs = nn.BatchNorm1d(16), x.clone(), x.clone()
    with torch.no_grad():
        torch.compile(norm, backend=cutegen.backend, options=options)(x)
        made = torch.compile(Writes2(), backend=cutegen.backend, options=options)(mine)
        want = Writes2()(theirs)
    ok("running statistics are still written", bool(norm.running_mean.abs().sum() > 0), compiled.report()[-2:])
    ok("and so are inputs", torch.equal(mine, theirs) and torch.equal(made, want), compiled.report()[-1])


tracing()
judging()
calling()
optimizing()
if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) >= (2, 5):
    choosing()
    compiling()
else:
    skip("torch.compile(backend='cutegen')", "needs torch 2.4 or newer")
print(f"1..{count}")
subprocess.run([os.environ["CUTEGEN_PROGRAM"], "server", "stop"], env={**os.environ, "CUTEGEN_RUNTIME": WORK.name + "/rt"}, capture_output=True, check=False)
sys.exit(failed != 0)
