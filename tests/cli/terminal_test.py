#!/usr/bin/env python3
"""terminal_test.py - what people see on a terminal: lines fit it, words stay whole, something is there at once.

    terminal_test.py CUTEGEN
"""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios

HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parent.parent
COMMANDS = [
    ["help"], ["help", "run"], ["help", "eval"], ["help", "suite"], ["config"], ["models"], ["doctor"], ["runs"],
    ["nothing"], ["run"], ["run", "missing.py"], ["show", "last"], ["run", "x.py", "--no-such-flag"],
    ["run", "{home}/examples/swish.py", "--no-report"],
    ["describe", "{home}/examples/swish.py"],
]


def on_terminal(program, words, columns, runs):
    """Everything the program writes to a terminal of so many columns."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(CUTEGEN_HOME=str(HOME), CUTEGEN_SERVER="yes", CUTEGEN_RUNTIME=os.environ.get("CUTEGEN_TEST_RUNTIME", runs + "/rt"),
                          CUTEGEN_DEVICE="simt", CUTEGEN_RUNS=runs, TERM="xterm", LC_ALL="C.UTF-8", XDG_CONFIG_HOME=runs)
        os.execv(program, [program, *words])
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.waitpid(pid, 0)
    return out.decode(errors="replace")


def lines_of(text):
    """As they stand on the screen: what is erased is gone."""
    for line in text.replace("\r\n", "\n").split("\n"):
        line = re.split(r"\r(?:\x1b\[K)?", line)[-1]
        yield re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line)


def too_long(text, columns):
    """Lines that do not fit although they could be broken: a path alone may be as long as it is."""
    return [line for line in lines_of(text) if len(line) > columns and len(line.split()) > 1]


def main():
    program = str(pathlib.Path(sys.argv[1]).resolve())
    tests = []
    with tempfile.TemporaryDirectory() as runs:
        runs = os.path.realpath(runs)
        os.chdir(runs)
        for words in COMMANDS:
            words = [w.format(home=HOME) for w in words]
            text = on_terminal(program, words, 80, runs)
            name = " ".join(pathlib.Path(w).name for w in words)
            tests.append((f"cutegen {name}: every line fits 80 columns", bool(text) and not too_long(text, 80),
                          too_long(text, 80) or [text]))
        text = on_terminal(program, ["run", str(HOME / "examples/swish.py"), "--no-report", "--depth", "1"], 60, runs)
        wide = too_long(text, 60)
        tests.append(("a run's table fits 60 columns", "depth  change" in text and not wide, wide or [text]))
        tests.append(("something is shown before the task is read",
                      -1 < text.find("reading the task") < text.find("task      "), [text[:400]]))
        text = on_terminal(program, ["resume", "last", "--width", "3", "--no-report"], 60, runs)
        wide = too_long(text, 60)
        tests.append(("a warning fits 60 columns", "--width is ignored" in text and not wide, wide or [text]))
        tasks = pathlib.Path(runs, "tasks")
        tasks.mkdir()
        (tasks / "a_task_with_quite_a_long_name_indeed.py").write_text((HOME / "examples/swish.py").read_text())
        (tasks / "bad.py").write_text("class Model: pass\n")
        for words, wanted in ((["show", "last"], "checked"), (["runs"], "best"), (["suite", str(tasks), "--depth", "0"], "fast_p")):
            text = on_terminal(program, words, 60, runs)
            wide = too_long(text, 60)
            tests.append((f"cutegen {words[0]} fits 60 columns", wanted in text and not wide, wide or [text]))
        for words in (["help"], ["help", "run"], ["help", "suite"]):
            text = subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=False).stdout
            tests.append((f"cutegen {' '.join(words)} into a pager fits 80 columns", bool(text) and not too_long(text, 80),
                          too_long(text, 80)))
        subprocess.run([program, "server", "stop"], env={**os.environ, "CUTEGEN_RUNTIME": runs + "/rt"}, capture_output=True, check=False)
    print(f"1..{len(tests)}")
    for number, (name, good, why) in enumerate(tests, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
        for line in [] if good else why[:12]:
            print("# " + line.replace("\n", "\n# "))
    return 0 if all(good for _, good, _ in tests) else 1


if __name__ == "__main__":
    sys.exit(main())
