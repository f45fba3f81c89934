#!/usr/bin/env python3
"""errors.py - wrong CuTe kernels through real compilers, and what their logs are boiled down to.

    errors.py BUILD                  every kernel of errors/ with NVRTC and, where there is one, nvcc
    errors.py BUILD rank_index ...   only these
    errors.py BUILD --only nvrtc     only that compiler
    errors.py BUILD --write          keep the logs as errors/NAME.COMPILER.log, for test_errors.c

A kernel that is not `k` is named by `// launches: NAME`. The line that is wrong ends with `// error: CALL`; test_errors says whether the verdict names line and call.
"""
import argparse
import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HOME = HERE.parent.parent
DEADLINE_S = 3600


def doctor(build):
    """What cutegen would use: {"NVRTC": path, "CuTe": path, "nvcc": path}."""
    done = subprocess.run([build / "src/cutegen", "doctor", "--json"], capture_output=True, text=True, check=False,
                          env={**os.environ, "CUTEGEN_HOME": str(HOME), "CUTEGEN_SERVER": "no"})
    return {check["name"]: check.get("path", "") for check in json.loads(done.stdout)["checks"]
            if check["state"] == "ok"}


def cuda_includes(nvrtc):
    """The headers that belong to an NVRTC: of a toolkit or of wheels."""
    lib = pathlib.Path(nvrtc).resolve()
    found = []
    for up in list(lib.parents)[:5]:
        for below in ("include", "include/cccl", "cuda_runtime/include", "cuda_cccl/include"):
            where = up / below
            if (where / "cuda_fp16.h").exists() or (where / "cuda/std").is_dir():
                found.append(str(where))
    return found


class Nvrtc:
    """One cutegen-builder for all kernels, as in a run."""

    name = "nvrtc"

    def __init__(self, build, tools):
        self.includes = [str(HOME / "include"), tools["CuTe"], *cuda_includes(tools["NVRTC"])]
        self.child = subprocess.Popen([build / "src/toolchain/cutegen-builder", tools["NVRTC"]], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def compile(self, source, arch):
        request = {"arch": "sm_" + arch, "cubin": True, "includes": self.includes, "defines": [], "names": re.findall(r"// launches: (.*)", source) or ["k"],
                   "deadline_ms": DEADLINE_S * 1000, "source": base64.b64encode(source.encode()).decode()}
        self.child.stdin.write(json.dumps(request) + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.child.stdout.readline())
        if not answer["ok"]:
            sys.exit(f"errors.py: the builder: {answer['text']}")
        return answer["compiled"], answer["log"]

    def close(self):
        self.child.stdin.close()
        self.child.wait()


class Nvcc:
    """nvcc, as in an export."""

    name = "nvcc"

    def __init__(self, _build, tools):
        self.nvcc = tools["nvcc"]
        self.includes = ["-I", str(HOME / "include"), "-I", tools["CuTe"]]

    def compile(self, source, arch):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "candidate.cu"
            path.write_text(source)
            done = subprocess.run([self.nvcc, "-std=c++17", "--expt-relaxed-constexpr", "-DCUTEGEN_DEVICE=1", "-cubin",
                                   "-arch=sm_" + arch, *self.includes, "-o", "candidate.cubin", "candidate.cu"],
                                  cwd=folder, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
        return done.returncode == 0, done.stdout + done.stderr

    def close(self):
        pass


def neutral(log, tools):
    """Without this machine's paths."""
    log = log.replace(tools["CuTe"], "/opt/cutlass/include").replace(str(HOME), "/opt/cutegen")
    return re.sub(r"/tmp/[^\s(]*/candidate", "candidate", log)


def compilers_of(tools, only):
    """Those that are here and wanted."""
    return [c for c, needs in ((Nvrtc, "NVRTC"), (Nvcc, "nvcc"))
            if tools.get("CuTe") and tools.get(needs) and only in (None, c.name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--only", choices=["nvrtc", "nvcc"])
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    args.build = args.build.resolve()
    tools = doctor(args.build)
    if not compilers_of(tools, args.only):
        print("skipped: no NVRTC or nvcc with CuTe")
        return 77
    kernels = sorted(p for p in (HERE / "errors").glob("*.cu") if not args.names or p.stem in args.names)
    passed = failed = 0
    out = HERE / "errors" if args.write else pathlib.Path(tempfile.mkdtemp())
    for compiler in (c(args.build, tools) for c in compilers_of(tools, args.only)):
        for kernel in kernels:
            source = kernel.read_text()
            arch = "90a" if "SM90" in source else "80"
            compiled, log = compiler.compile(source, arch)
            target = out / f"{kernel.stem}.{compiler.name}.log"
            target.write_text(neutral(log, tools))
            if compiled:
                good, said = False, "compiled without an error\n"
            else:
                done = subprocess.run([args.build / "tests/toolchain/test_toolchain_errors", kernel, target],
                                      capture_output=True, text=True, check=False)
                good, said = done.returncode == 0, done.stdout + done.stderr
            passed, failed = passed + good, failed + (not good)
            if not good:
                print(f"{kernel.stem} ({compiler.name}): {said}", flush=True)
        compiler.close()
    if not args.write:
        shutil.rmtree(out)
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 and passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
