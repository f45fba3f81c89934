#!/usr/bin/env python3
"""wheel.py - the wheel: dist/cutegen-VERSION-py3-none-manylinux_*_ARCH.whl (make wheel).

    setup/wheel.py [ARCH...]            x86_64, aarch64; default: both
    setup/wheel.py --tree DIR ARCH      of an installed tree that is there already (tests); no auditwheel

The relocatable tree of setup/dist.sh lies in cutegen/_tree, python/cutegen around it. CuTe's headers and NVRTC come from
their own wheels. auditwheel says which manylinux tag the programs fit. The same sources give the same bytes: names are
sorted, times are SOURCE_DATE_EPOCH (else the last commit's), and zip knows no owner.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import venv
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOLS = os.environ.get("CUTEGEN_TOOLS") or os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"), "cutegen")
LIMIT = 20 << 20
LEFT_OUT = ("share/cutegen/cutlass/", "share/cutegen/cccl/", "share/man/", "share/bash-completion/", "share/zsh/", "share/fish/", "README.md", "LICENSE")


def say(text):
    print(f"wheel: {text}", flush=True)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r"^ *version: '(.*)',", read("meson.build"), re.M).group(1)


def pinned():
    return {name: value.strip("'") for name, value in re.findall(r"^(\w+)=(.*)$", read("setup/versions"), re.M)}


def epoch():
    """When the sources were written; zip knows no time before 1980."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if not told:
        asked = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=False)
        told = asked.stdout.strip() or "0"
    return max(int(told), 315532800)


def metadata():
    pins = pinned()
    lines = [
        "Metadata-Version: 2.4",
        "Name: cutegen",
        f"Version: {version()}",
        "Summary: From a PyTorch module to a faster, verified CuTe kernel",
        "License-Expression: Apache-2.0",
        "License-File: LICENSE",
        "Requires-Python: >=3.9",
        "Requires-Dist: torch",
        f"Requires-Dist: nvidia-cutlass=={pins['CUTLASS']}",
    ]
    lines += [f"Requires-Dist: nvidia-cuda-{part}{pins['CUDA_WHEEL_RANGE']}" for part in ("nvrtc", "runtime", "crt")]
    lines.append(f"Requires-Dist: nvidia-cuda-cccl=={pins['CUDA_WHEELS']}")  # a later one does not compile with this CUTLASS
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", read("README.md")])


def members(tree):
    """What is in the wheel: {name: (bytes, executable)}."""
    found = {}
    package = os.path.join(ROOT, "python", "cutegen")
    for name in sorted(os.listdir(package)):
        if name.endswith(".py") or name == "py.typed":
            found[f"cutegen/{name}"] = (os.path.join(package, name), False)
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in names:
            path = os.path.join(folder, name)
            below = os.path.relpath(path, tree)
            if not below.startswith(LEFT_OUT):
                found[f"cutegen/_tree/{below}"] = (path, bool(os.stat(path).st_mode & stat.S_IXUSR))
    made = {}
    for name, (path, executable) in found.items():
        with open(path, "rb") as file:
            made[name] = (file.read(), executable)
    return made


def information(tree, tag):
    """dist-info, but for RECORD."""
    info = f"cutegen-{version()}.dist-info"
    texts = {
        "METADATA": metadata(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: cutegen setup/wheel.py\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": "[console_scripts]\ncutegen = cutegen.__main__:main\n\n[torch_dynamo_backends]\ncutegen = cutegen.compiled:backend\n",
        "licenses/LICENSE": read("LICENSE"),
    }
    licences = os.path.join(tree, "share", "cutegen", "licences")
    for name in sorted(os.listdir(licences)) if os.path.isdir(licences) else []:
        with open(os.path.join(licences, name), encoding="utf-8", errors="replace") as file:
            texts[f"licenses/{name}"] = file.read()
    return {f"{info}/{name}": (text.encode(), False) for name, text in texts.items()}


def write(path, tree, tag):
    """One wheel, the same bytes for the same files."""
    files = {**members(tree), "cutegen/_tree/share/cutegen/wheel": (b"This tree came with pip install cutegen.\n", False)}
    files.update(information(tree, tag))
    record = f"cutegen-{version()}.dist-info/RECORD"
    rows = []
    for name, (data, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}")
    when = time.gmtime(epoch())[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, (data, executable) in [*sorted(files.items()), (record, ("\n".join([*rows, f"{record},,"]).encode() + b"\n", False))]:
            entry = zipfile.ZipInfo(name, when)
            entry.external_attr = (stat.S_IFREG | (0o755 if executable else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(entry, data, compresslevel=9)


def auditwheel():
    """The command, in a venv of its own."""
    where = os.path.join(TOOLS, "wheel")
    program = os.path.join(where, "bin", "auditwheel")
    if not os.path.exists(program):
        want = f"auditwheel=={pinned()['AUDITWHEEL']}"
        say(f"pip, into {where}: {want}")
        venv.create(where, with_pip=True, clear=True)
        subprocess.run([os.path.join(where, "bin", "pip"), "-q", "--disable-pip-version-check", "install", want], check=True)
    return program


def confirmed(path, arch):
    """The lowest manylinux tag that auditwheel confirms for this wheel."""
    done = subprocess.run([auditwheel(), "show", path], capture_output=True, text=True, check=False)
    said = " ".join((done.stdout + done.stderr).split())
    found = re.search(r'following platform tag: "(manylinux_\d+_\d+_\w+)"', said)
    if not found or not found.group(1).endswith(arch):
        sys.exit(f"wheel: auditwheel confirms no manylinux tag:\n{done.stdout}{done.stderr}")
    return found.group(1)


def make(arch):
    subprocess.run([os.path.join(ROOT, "setup", "dist.sh"), arch], check=True, cwd=ROOT)
    tree = os.path.join(ROOT, "build", "tree", f"cutegen-{version()}-{arch}")
    with tempfile.TemporaryDirectory() as work:
        plain = os.path.join(work, f"cutegen-{version()}-py3-none-linux_{arch}.whl")
        write(plain, tree, f"py3-none-linux_{arch}")
        tag = f"py3-none-{confirmed(plain, arch)}"
    return finish(tree, tag)


def finish(tree, tag):
    path = os.path.join(ROOT, "dist", f"cutegen-{version()}-{tag}.whl")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path + ".new", tree, tag)
    os.replace(path + ".new", path)
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        say(f"{os.path.relpath(path, ROOT)}  {size / 1e6:.1f} MB, sha256 {hashlib.sha256(file.read()).hexdigest()[:16]}")
    if size > LIMIT:
        sys.exit(f"wheel: {size} bytes, {LIMIT} at most")
    return path


def main(arguments):
    if arguments[:1] == ["--tree"]:
        out = arguments[3] if len(arguments) > 3 else os.path.join(ROOT, "dist")
        os.makedirs(out, exist_ok=True)
        tag = f"py3-none-linux_{arguments[2]}"
        path = os.path.join(out, f"cutegen-{version()}-{tag}.whl")
        write(path, arguments[1], tag)
        print(json.dumps({"wheel": path, "bytes": os.path.getsize(path)}))
        return
    if not shutil.which("readelf"):
        sys.exit("wheel: no readelf: apt-get install binutils")
    for arch in arguments or ["x86_64", "aarch64"]:
        make(arch)


if __name__ == "__main__":
    main(sys.argv[1:])
