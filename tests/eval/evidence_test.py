#!/usr/bin/env python3
"""evidence_test.py - what is said about real faulty kernels follows from what was seen.

    evidence_test.py CUTEGEN [NAME...]

The first lines of evidence/NAME.cu say what must hold for the verdict: `verdict: KIND`; `says:` and `never:`, texts that
are or are not told; `first:`, what the first finding is; `once:`, a text that is told a single time.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TASK = HERE.parent / "cheats/tasks/rows.py"
DEADLINE_S = 3600


def judge(cutegen, kernel, runs, env):
    """The verdict as JSON, and everything `show` prints of it."""
    common = ["--runs", runs, "--quiet"]
    done = subprocess.run([cutegen, "eval", TASK, kernel, "--device", "simt", "--json", *common], env=env, check=False,
                          capture_output=True, text=True, timeout=DEADLINE_S)
    if done.returncode not in (0, 1):
        sys.exit(f"evidence_test.py: {kernel.name}: {done.stderr}")
    shown = subprocess.run([cutegen, "show", "last", "--attempt", "1", "--runs", runs], env=env, check=False,
                           capture_output=True, text=True, timeout=DEADLINE_S)
    return json.loads(done.stdout), " ".join(shown.stdout.split())


def faults(kernel, answer, shown):
    """What does not hold."""
    for key, text in re.findall(r"^// (verdict|says|never|first|once): (.*)$", kernel.read_text(), re.M):
        if key == "verdict" and answer["verdict"] != text:
            yield f"the verdict is {answer['verdict']}, not {text}"
        if key == "says" and text not in shown:
            yield f"'{text}' is not told"
        if key == "never" and text in shown:
            yield f"'{text}' is told"
        if key == "first" and answer["findings"][0]["kind"] != text:
            yield f"the first finding is {answer['findings'][0]['kind']}, not {text}"
        if key == "once" and shown.count(text) > 1 + shown.count(": " + text):
            yield f"'{text}' is told {shown.count(text)} times"


def main():
    cutegen = pathlib.Path(sys.argv[1]).resolve()
    kernels = sorted(p for p in (HERE / "evidence").glob("*.cu") if len(sys.argv) == 2 or p.stem in sys.argv[2:])
    bad = 0
    print(f"1..{len(kernels)}")
    with tempfile.TemporaryDirectory() as work:
        # the suite's warm server (tests/run.sh), or one of its own
        own = {**os.environ, "CUTEGEN_HOME": str(HERE.parent.parent), "CUTEGEN_SERVER": "yes", "CUTEGEN_RUNTIME": f"{work}/rt"}
        env = {**own, "CUTEGEN_RUNTIME": os.environ.get("CUTEGEN_TEST_RUNTIME", own["CUTEGEN_RUNTIME"])}
        for number, kernel in enumerate(kernels, 1):
            answer, shown = judge(cutegen, kernel, f"{work}/{kernel.stem}", env)
            wrong = list(faults(kernel, answer, shown))
            print(f"{'not ok' if wrong else 'ok'} {number} - {kernel.stem}", flush=True)
            for text in wrong:
                print(f"# {text}")
            if wrong:
                print(f"# {shown}")
            bad += bool(wrong)
        subprocess.run([cutegen, "server", "stop"], env=own, capture_output=True, check=False)
    return 1 if bad or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
