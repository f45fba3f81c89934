#!/usr/bin/env python3
"""Which parts of the confinement keep CUDA from starting, and what it needs: one run, no questions.

    cc -D_GNU_SOURCE -Isrc -o FOLDER/layers bench/gpu/layers.c src/confine/{enter,landlock,policy,roles,root,probe}.c libbase.a -ljansson -lpthread
    cc -o FOLDER/cuda_small bench/gpu/cuda_small.c -ldl
    bench/gpu/layers.py FOLDER            with strace in FOLDER/strace or on PATH

Each layer alone and all together; the calls that fail there and not outside; then what failed is allowed, one round after another,
until CUDA starts; then each addition is taken away again to see whether it was needed. The same with PyTorch as a guest.

    bench/gpu/layers.py FOLDER oracle     instead: what an oracle does (bench/gpu/oracle_steps.py), with all layers and without one of them
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BEGIN = time.monotonic()
FOLDER = Path(sys.argv[1]).resolve()
LAYERS = str(FOLDER / "layers")
NUMBERS = {"socketpair": 53, "socket": 41, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setattr": 314, "prlimit64": 302, "kill": 62, "tgkill": 234,
           "tkill": 200, "move_pages": 279, "mknod": 133, "mknodat": 259, "chmod": 90, "fchmod": 91, "fchmodat": 268, "clone": 56, "fork": 57, "vfork": 58,
           "ioctl": 16, "fcntl": 72, "perf_event_open": 298, "process_vm_readv": 310, "userfaultfd": 323, "pidfd_open": 434, "pidfd_getfd": 438, "prctl": 157,
           "shmget": 29, "mq_open": 240, "semget": 64, "kcmp": 312, "get_robust_list": 274, "personality": 135, "setpriority": 141, "utimensat": 280, "clone3": 435,
           "fchown": 93, "chown": 92, "connect": 42, "bind": 49, "listen": 50, "accept": 43, "accept4": 288}
SMALL = [str(FOLDER / "cuda_small")]
TORCH = "import torch; a = torch.ones(512, 512, device='cuda'); b = (a @ a).relu(); torch.cuda.synchronize(); print('ok', float(b[0, 0]), flush=True)"


def say(text: str) -> None:
    print(f"[{time.monotonic() - BEGIN:5.1f}] {text}", flush=True)


def tracer() -> list[str]:
    own = FOLDER / "strace"
    if own.is_dir():
        return ["/lib64/ld-linux-x86-64.so.2", "--library-path", str(own), str(own / "strace")]
    return [shutil.which("strace") or "strace"]


def start(command: list[str], environ: dict[str, str] | None = None) -> tuple[int, str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environ)
    except subprocess.TimeoutExpired:
        return 124, "no end"
    return done.returncode, (done.stdout + done.stderr).strip()[-400:]


def traced(command: list[str]) -> set[str]:
    """The failing calls, without numbers that differ from run to run."""
    with tempfile.TemporaryDirectory() as work:
        out = Path(work) / "log"
        start([*tracer(), "-f", "-Z", "-o", str(out), *command])
        calls = set()
        for line in out.read_text(errors="replace").splitlines() if out.exists() else []:
            match = re.match(r"\d+\s+(\w+)\((.*)\) = -1 (E\w+)", line)
            if match and match[3] not in ("EAGAIN", "EINTR", "ETIMEDOUT", "EINPROGRESS"):
                arguments = re.sub(r"0x[0-9a-f]+|/proc/\d+|\b\d{4,}\b", lambda m: "/proc/N" if m[0].startswith("/proc") else "N", match[2])
                if "/.old" in arguments or match[1] == "mkdir":
                    continue  # the private root being made
                calls.add(f"{match[1]}({arguments[:160]}) {match[3]}")
        return calls


def grants(calls: set[str]) -> list[str]:
    """What `layers` is to be told so that these calls succeed."""
    given: list[str] = []
    for call in sorted(calls):
        name, why = call.split("(", 1)[0], call.rsplit(" ", 1)[1]
        path = re.search(r'"(/[^"]+)"', call)
        if path and why in ("EACCES", "ENOENT", "EROFS") and os.path.exists(path[1].replace("/proc/N", "/proc/self")):
            where = path[1]
            option = "--device" if where.startswith("/dev/") else "--read"
            if [option, where] not in [given[i : i + 2] for i in range(0, len(given), 2)]:
                given += [option, where]
        elif why in ("EPERM", "ENOSYS", "EACCES") and name in NUMBERS:
            given += ["--permit", str(NUMBERS[name])]
    return given


def pairs(flat: list[str]) -> list[list[str]]:
    return [flat[i : i + 2] for i in range(0, len(flat), 2)]


def find_needs(title: str, base: list[str], program: list[str], known: set[str], layers: str) -> list[list[str]] | None:
    """Allows what failed until the program works; None: it does not."""
    needs: list[list[str]] = []
    for _ in range(8):
        command = [LAYERS, "-" + layers, *base, *sum(needs, []), "--", *program]
        code, text = start(command)
        if code == 0:
            break
        fresh = traced(command) - known
        more = [pair for pair in pairs(grants(fresh)) if pair not in needs]
        say(f"{title} -{layers}: {text[-200:]!r}; {len(fresh)} calls fail only here; allowing {more}")
        for call in sorted(fresh)[:60]:
            print("     ", call)
        if not more:
            return None
        needs += more
    else:
        return None
    for pair in list(needs):
        fewer = [n for n in needs if n != pair]
        if start([LAYERS, "-" + layers, *base, *sum(fewer, []), "--", *program])[0] == 0:
            needs = fewer
    say(f"{title} -{layers}: works; needed beside the role: {needs or 'nothing'}")
    return needs


def ask_peers(base: list[str], known: set[str]) -> None:
    """CUDA IPC: does memory go from one confined process to another?"""
    for giver in ("", "nclsr", "clsr", "ncsr"):
        inside = [LAYERS, "-" + giver, *base, "--"] if giver else []
        exporter = subprocess.Popen([*inside, *SMALL, "export"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        handle = exporter.stdout.readline().strip() if exporter.stdout else ""
        works = [t or "plain" for t in ("", "nclsr", "clsr", "ncsr")
                 if start([*([LAYERS, "-" + t, *base, "--"] if t else []), *SMALL, "import", handle])[0] == 0]
        say(f"IPC from {giver or 'plain'} ({handle[:24]}) is taken by: {' '.join(works) or 'nobody'}")
        if not giver:
            find_needs("IPC", base, [*SMALL, "import", handle], known | traced([*SMALL, "import", handle]), "nclsr")
        if exporter.stdin:
            exporter.stdin.close()
        exporter.wait()


def ask_oracle(python: str) -> int:
    """An oracle's steps inside the layers of its role, several sets beside each other; then, where one fails, what it lacks."""
    steps = Path(__file__).resolve().parent / "oracle_steps.py"
    started = []
    for layers in ("", "nclsr", "clsr", "ncsr"):
        own = tempfile.mkdtemp()
        environ = {"PATH": os.environ["PATH"], "TMPDIR": own, "HOME": own, "USER": "cutegen", "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
        role = ["--role", "oracle", "--program", python, "--own", own, "--read", str(steps)]
        command = [python, "-I", "-B", "-u", str(steps)]
        inside = [LAYERS, "-" + layers, *role, "--", *command] if layers else command
        started.append((layers, role, command, subprocess.Popen(inside, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)))
    failed = []
    for layers, role, command, process in started:
        out, _ = process.communicate()
        say(f"oracle -{layers or ' (plain)'}: exit {process.returncode}")
        print("      " + out.strip().replace("\n", "\n      ")[-3000:], flush=True)
        if process.returncode and layers:
            failed.append((layers, role, command))
    known = traced(failed[0][2]) if failed else set()
    for layers, role, command in failed:
        find_needs("oracle", role, command, known, layers)
    return 1 if failed else 0


def main() -> int:
    if sys.argv[2:] == ["oracle"]:
        return ask_oracle(shutil.which("python3") or sys.executable)
    python = shutil.which("python3") or sys.executable
    base = ["--program", SMALL[0]]
    say(f"plain: {start(SMALL)}")
    known = traced(SMALL)
    say(f"{len(known)} calls fail in the plain run")
    for call in sorted(known):
        if '"/lib' not in call and '"/usr/lib' not in call:
            print("     ", call)
    for layers in ("n", "c", "l", "s", "r", "nclsr", "clsr", "ncsr", "nclsrX"):
        say(f"-{layers}: {start([LAYERS, '-' + layers, *base, '--', *SMALL])}")
    for layers in ("nclsr", "clsr", "ncsr"):
        find_needs("small", base, SMALL, known, layers)
    ask_peers(base, known)
    torch = [python, "-I", "-c", TORCH]
    guest = ["--role", "guest", "--program", python, "--write", tempfile.mkdtemp(), "--device", "/dev/urandom"]
    say(f"torch, plain: {start(torch)}")
    for layers in ("nclsr", "clsr", "ncsr", "nclsrX"):
        say(f"torch -{layers}: {start([LAYERS, '-' + layers, *guest, '--', *torch])}")
    find_needs("torch", guest, torch, traced(torch), "nclsr")
    return 0


if __name__ == "__main__":
    sys.exit(main())
