"""Turns exports that were judged on simt into ones for a GPU: the judged PTX, assembled by ptxas. For measuring the loader where there is no time to judge.

    python3 bench/gpu/assemble.py ARCH NAME-OF-GPU FOLDER...             sm_90 "NVIDIA H200" exports/*

What comes out was not judged on that GPU, and its record says so: whoever uses it compares the results (gradients.py, exports.py).
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys


def assemble(folder, arch, gpu):
    path = folder / "launches.json"
    table = json.loads(path.read_text())
    table["device"].update(kind="cuda", name=gpu, arch=arch)
    for module in table["modules"]:
        source = folder / module["file"]
        code = source.with_suffix(".cubin")
        subprocess.run(["ptxas", f"-arch={arch}", str(source), "-o", str(code)], check=True)
        source.unlink()
        module.update(file=code.name, kind="cubin", judged=False, sha256=hashlib.sha256(code.read_bytes()).hexdigest())
    path.write_text(json.dumps(table, indent=1))
    record = json.loads((folder / "record.json").read_text())
    record.update(assembled=f"{arch}, from the PTX that was judged on simt; not judged on {gpu}")
    record["files"]["launches.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "record.json").write_text(json.dumps(record, indent=1))
    if (folder / "backward").is_dir():
        assemble(folder / "backward", arch, gpu)


os.environ["PATH"] += ":/usr/local/cuda/bin"
for one in sys.argv[3:]:
    assemble(pathlib.Path(one), sys.argv[1], sys.argv[2])
