#!/usr/bin/env python3
"""agent.py CUTEGEN [TRANSCRIPT.md] - a scripted agent that has only the MCP tools repairs five wrong kernels.

It knows no task's answer: it reads the description's operators and the verdict (cause, line, fix) and applies one of a few
general rules, one edit per round. A kernel that is not right after twelve rounds is a failure. The transcript has every call.
"""
import difflib
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "mcp"))
from client import Stdio  # noqa: E402

TASKS = ["swish", "relu", "gelu", "leaky_relu", "softmax"]
ROUNDS = 12
NAMES = ["threadIdx", "blockIdx", "blockDim", "gridDim", "expf", "fmaxf", "int64_t"]
# What the agent knows of mathematics: an operator of PyTorch, for one element v.
FORMULAS = {
    "aten.relu.default": "fmaxf(v, 0.0f)",
    "aten.gelu.default": "0.5f * v * erfcf(-0.70710678f * v)",
    "aten.leaky_relu.default": "v > 0.0f ? v : 0.01f * v",
    "aten.sigmoid.default": "1.0f / (1.0f + expf(-v))",
}


def line_number(verdict):
    found = re.search(r":(\d+)$", verdict.get("where") or "")
    return int(found.group(1)) if found else 0


def repair(source, verdict, operators):
    """One edit, and why."""
    lines, at = source.split("\n"), line_number(verdict)
    cause = verdict["cause"] or ""
    undefined = re.search(r'identifier "(\w+)" is undefined', cause)
    if undefined:
        near = difflib.get_close_matches(undefined.group(1), NAMES, 1)
        if near:
            lines[at - 1] = lines[at - 1].replace(undefined.group(1), near[0])
            return "\n".join(lines), "the name %s is not known; %s is near" % (undefined.group(1), near[0])
    if verdict["verdict"] == "compile error" and re.search(r'expected a ";"', cause):
        lines[at - 1] += ";"
        return "\n".join(lines), "a semicolon is missing at the end of line %d" % at
    if verdict["verdict"] in ("unsafe memory", "guard hit") and "<=" in "".join(lines):
        return source.replace("<=", "<", 1), "an access is out of bounds; the bound lets one element too many in"
    if verdict["verdict"] == "race" and at:
        lines.insert(at - 1, re.match(r"\s*", lines[at - 1]).group(0) + "__syncthreads();")
        return "\n".join(lines), "two threads meet at line %d without a barrier" % at
    if verdict["verdict"] == "not written":
        return re.sub(r"cutegen_dim3\(n / \d+,", "cutegen_dim3(cutegen_ceil_div(n, 256),", source), "the grid does not cover all elements"
    if verdict["verdict"] == "wrong values":
        for op in operators:
            if op in FORMULAS:
                return re.sub(r"y\[i\] = .*;", lambda _: "y[i] = %s;" % FORMULAS[op].replace("v", "x[i]"), source), "the values are not those of " + op
    return None, "no rule fits"


def solve(server, name, log):
    task = os.path.join(ROOT, "examples", name + ".py")
    with open(os.path.join(HERE, "wrong", name + ".cu")) as f:
        source = f.read()
    log("\n## %s\n" % name)
    described = server.call("describe_task", task=task)["structuredContent"]
    log("`describe_task` -> %s; operators %s\n" % (described["class"], ", ".join(described["operators"])))
    for turn in range(1, ROUNDS + 1):
        result = server.call("evaluate_kernel", task=task, source=source)
        if result["isError"]:
            log("the tool failed: " + result["content"][0]["text"])
            return False
        verdict = result["structuredContent"]
        said = "\n".join(x for x in result["content"][0]["text"].splitlines() if not x.startswith("evidence:"))
        log("Round %d, `evaluate_kernel`:\n\n```text\n%s\n```\n" % (turn, said))
        if verdict["pass"]:
            log("%s is right after %d rounds.\n" % (name, turn))
            return True
        before, (source, why) = source, repair(source, verdict, described["operators"])
        if not source or source == before:
            log("The agent gives up: %s.\n" % why)
            return False
        change = [x for x in difflib.unified_diff(before.split("\n"), source.split("\n"), n=0, lineterm="") if not x.startswith(("---", "+++", "@@"))]
        log("Edit: %s.\n\n```diff\n%s\n```\n" % (why, "\n".join(change)))
    return False


def main():
    out = open(sys.argv[2], "w") if len(sys.argv) > 2 else sys.stdout

    def log(text):
        print(text, file=out, flush=True)

    log("# A scripted agent and the MCP tools\n\nWritten by `bench/mcp/agent.py`: five wrong kernels on simt, an agent that has only `describe_task` and\n"
        "`evaluate_kernel`, and a few general rules. Times are modelled, not measured.")
    env = {**os.environ, "CUTEGEN_HOME": ROOT, "CUTEGEN_DEVICE": "simt", "CUTEGEN_TARGET": "cuda"}
    server = Stdio(os.path.abspath(sys.argv[1]), "2025-11-25", env, os.getcwd())
    solved = [name for name in TASKS if solve(server, name, log)]
    server.close()
    print("%d of %d solved: %s" % (len(solved), len(TASKS), ", ".join(solved)))
    sys.exit(len(solved) != len(TASKS))


main()
