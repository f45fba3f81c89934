"""Peak workspace of generic kernels beside the lower bound of their order: the largest sum of what is alive at a launch.

    python3 bench/gpu/modules_workspace.py CUTEGEN LADDER TASK.py...        a row for each task that generic kernels write

Read from the kernels' own text: every launch names the places that it reads and writes. GPU and PyTorch's results are not needed.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BYTES = {"float": 4, "half_t": 2, "bfloat16_t": 2, "uint16_t": 2, "int16_t": 2, "int32_t": 4, "int": 4, "int64_t": 8, "uint8_t": 1, "int8_t": 1, "bool": 1, "uint64_t": 8}
ALIGNED = 256


def kernels(text):
    """name -> [(bytes, is it written)] of its pointers, in order."""
    found = {}
    for head in re.finditer(r"__global__ void[^(]*(?:\([^)]*\))?\s*(\w+)\(([^)]*)\)\s*\{(.*?)\n\}", text, re.S):
        name, parameters, body = head.groups()
        sizes = []
        for parameter in parameters.split(","):
            match = re.match(r"\s*(\w+)( const)? \*(p\w+)", parameter)
            if not match:
                continue
            kind, const, pointer = match.groups()
            shape = re.search(r"make_gmem_ptr\(\(?[^;]*?\b" + pointer + r"\)[^;]*?make_shape\((.*?)\)\s*,\s*make_stride", body, re.S)
            count = 1
            for number in re.findall(r"\((\d+)\)", shape.group(1)) if shape else []:
                count *= int(number)
            sizes.append((-(-count * BYTES[kind] // ALIGNED) * ALIGNED, not const))
        found[name] = sizes
    return found


def launches(text):
    """[(offset or None) of each pointer] with the kernel's name, in order."""
    plan = text[text.rindex("CUTEGEN_PLAN") :]
    made = []
    for call in re.split(r"CUTEGEN_LAUNCH\(", plan)[1:]:
        name = re.match(r"\s*call,\s*\(?(\w+)", call).group(1)
        call = call[: call.index(";")]
        raw = re.finditer(r"ws \+ (\d+)|CUTEGEN_(?:DATA|AT)\(", call)
        made.append((name, [int(m.group(1)) if m.group(1) else None for m in raw]))
    return made


def measured(text):
    """(launches, bytes of workspace, lower bound of the order)."""
    whole = re.search(r"cutegen_workspace\(call, (\d+)\)", text)
    known, order = kernels(text), launches(text)
    alive = []  # [first, last, bytes]
    current = {}
    for at, (name, places) in enumerate(order):
        pointers = known.get(name, [])
        assert len(pointers) == len(places), (name, pointers, places)
        for (size, written), offset in zip(pointers, places):
            if offset is None:
                continue
            buffer = current.get(offset)
            if written and (buffer is None or buffer[2] != size or buffer[1] < at):
                buffer = current[offset] = [at, at, size]
                alive.append(buffer)
            elif buffer:
                buffer[1] = at
    bound = max((sum(b[2] for b in alive if b[0] <= at <= b[1]) for at in range(len(order))), default=0)
    return len(order), int(whole.group(1)) if whole else 0, bound


def main():
    cutegen, ladder, *tasks = sys.argv[1:]
    rows = []
    os.environ.setdefault("CUTEGEN_SERVER", "yes")
    print("| task | launches | workspace | bound | ratio |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as work:
        for task in tasks:
            said = subprocess.run([cutegen, "describe", task, "--device", "simt", "--no-scale", "--json"], capture_output=True, text=True)
            if said.returncode:
                continue
            folder = pathlib.Path(work, pathlib.Path(task).stem)
            folder.mkdir(exist_ok=True)
            (folder / "d.json").write_text(said.stdout)
            subprocess.run([ladder, str(folder / "d.json"), str(folder)], capture_output=True)
            kernel = next(iter(sorted(folder.glob("*.0.cu"))), None)
            text = kernel.read_text() if kernel else ""
            if "team_all" not in text or "do_part_1" in text:
                continue
            count, whole, bound = measured(text)
            if bound:
                rows.append(whole / bound)
                print(f"| {json.loads(said.stdout)['name']} | {count} | {whole} | {bound} | {whole / bound:.3f} |", flush=True)
    rows.sort()
    print(f"\n{len(rows)} graphs: ratio median {rows[len(rows) // 2]:.3f}, largest {rows[-1]:.3f}")


main()
