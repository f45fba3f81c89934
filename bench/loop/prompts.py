"""prompts.py CUTEGEN - three prompts with and without the memory between tasks, in Markdown: docs/memory.md is made by this.

A store of its own is filled by three runs of the stochastic model (stochastic.py), one of each class, on simt. Then
`cutegen prompt` is asked for three tasks with and without --no-memory; what is shown is the difference, whole.
"""
import difflib
import os
import re
import subprocess
import sys
import tempfile

program = os.path.abspath(sys.argv[1])
here = os.path.dirname(os.path.abspath(__file__))
examples = os.path.join(here, "..", "..", "examples")
RUNS = [("swish", 3), ("row_sum", 3), ("square_matmul", 5)]
HEAD = """# Prompts with and without memory

What [the memory between tasks](loop.md#memory-between-tasks) adds to a prompt, for three tasks. Written by
`bench/loop/prompts.py CUTEGEN >docs/memory.md`: do not edit this page. The store has three runs on simt, one of each
class, by a model that draws its steps (`bench/loop/stochastic.py`); all times are modelled. Lines are wrapped here.
"""


def cutegen(work, *words):
    said = subprocess.run([program, *words, "--runs", work + "/runs"], cwd=work, capture_output=True, text=True,
                          env=dict(os.environ, CUTEGEN_DEVICE="simt", CUTEGEN_DRAWS="1", XDG_CONFIG_HOME=work + "/config"))
    if said.returncode:
        sys.exit("prompts.py: cutegen %s: exit %d\n%s" % (" ".join(words), said.returncode, said.stderr))
    return said.stdout


def fold(line, width=112):
    """Between words, further lines indented."""
    words, out = line.split(" "), ""
    for word in words:
        tail = out.rpartition("\n")[2]
        out += word if not out else "\n  " + word if len(tail) + 1 + len(word) > width else " " + word
    return out.split("\n")


def show(work, title, task, *flags):
    path = os.path.join(examples, task + ".py")
    with_it = cutegen(work, "prompt", path, *flags).splitlines()
    without = cutegen(work, "prompt", path, *flags, "--no-memory").splitlines()
    said = "cutegen prompt examples/%s.py %s" % (task, " ".join(os.path.basename(f) for f in flags))
    print("\n## %s\n\n`%s` has %d lines, with `--no-memory` %d.\nThe difference, with a line around it:\n"
          % (title, said.strip(), len(with_it), len(without)))
    for line in difflib.unified_diff(without, with_it, n=1, lineterm=""):
        if not re.match(r"---|\+\+\+|@@", line) and line.strip():
            for part in fold(line):
                print("    " + part)


def main():
    with tempfile.TemporaryDirectory(prefix="cutegen-prompts-") as work:
        for task, seed in RUNS:
            model = "exec:python3 %s/stochastic.py %d %s/%s.draws task=%s" % (here, seed, work, task, task)
            cutegen(work, "run", os.path.join(examples, task + ".py"), "--model", model, "--depth", "6", "--floor-stop", "0", "--no-report",
                    "--no-memory")
        kernel = os.path.join(work, "best.cu")
        with open(kernel, "w") as f:
            f.write(cutegen(work, "show", "last", "--source"))
        print(HEAD, end="")
        show(work, "A first kernel, pointwise", "gelu")
        show(work, "A first kernel, a reduction", "softmax")
        show(work, "A step of a product", "square_matmul", "--stage", "optimize", "--kernel", kernel)


main()
