"""The kernels of the table of matrix products, as the built-in engineer writes them for an H200. Needs no GPU.

    python3 bench/gpu/gemm_kernels.py CUTEGEN LADDER OUT [ROW...]     OUT/ROW.cu; bench/gpu/gemm.sh takes the folder

LADDER is build/release/tests/expert/expert_ladder. A task is described with primes for its sizes, which is quick; then the
sizes are put in, and the ladder is climbed without the steps that a row leaves out.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

WIDE, CLUSTER, FUSE, BOTH = "compute tiles of 128x256", "pair blocks", "split A in registers", "split A and B inside"
PLANES = [FUSE, BOTH]

# Row: the beginnings of the steps it leaves out.
ROWS = {
    "square_matmul": PLANES, "symmetric_matmul": PLANES, "transposed_a_matmul": PLANES, "transposed_b_matmul": PLANES,
    "transposed_both_matmul": PLANES, "matmul": PLANES, "irregular_matmul": PLANES, "batched_matmul": PLANES,
    "tensor3d_matmul": [CLUSTER, BOTH], "tensor4d_matmul": [BOTH], "large_k_matmul": [], "small_k_matmul": PLANES,
    "tall_skinny_matmul": PLANES, "upper_triangular_matmul": [], "lower_triangular_matmul": [],
    "linear_gelu": PLANES, "linear_residual": PLANES, "mlp": [WIDE, CLUSTER] + PLANES,
    "half_matmul": [], "bfloat16_matmul": [], "half_batched_matmul": [CLUSTER], "bfloat16_batched_matmul": [CLUSTER],
    "half_linear_gelu": [], "bfloat16_linear_gelu": [],
}
PRIMES = [101, 103, 107, 109, 113]


def constants(path):
    with open(path) as file:
        return {name: int(size) for name, size in re.findall(r"^([A-Z_]+) = (\d+)$", file.read(), re.M)}


def grow(value, sizes):
    """The description with sizes instead of primes: a number is a product of them, or none of our business."""
    if isinstance(value, dict):
        return {key: grow(x, sizes) for key, x in value.items()}
    if isinstance(value, list):
        return [grow(x, sizes) for x in value]
    if isinstance(value, int) and not isinstance(value, bool):
        for prime, size in sizes.items():
            while value and value % prime == 0:
                value = value // prime * size
    return value


def describe(cutegen, path):
    sizes = constants(path)
    primes = dict(zip(PRIMES, sizes.values()))
    flags = [word for name, prime in zip(sizes, PRIMES) for word in ("--set", f"{name}={prime}")]
    run = subprocess.run([cutegen, "describe", path, "--device", "simt", "--no-scale", "--json", *flags], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{path}: {run.stdout[-300:]} {run.stderr[-300:]}")
    return grow(json.loads(run.stdout), primes)


def climb(ladder, description, without):
    """The last kernel of the ladder."""
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/task.json", "w") as file:
            json.dump(description, file)
        run = subprocess.run([ladder, f"{work}/task.json", work, "sm_90a", *without], capture_output=True, text=True)
        if run.returncode:
            raise SystemExit(f"{description['name']}: {run.stderr}")
        last = max((x for x in os.listdir(work) if x.endswith(".cu")), key=lambda x: int(x.split(".")[-2]))
        with open(f"{work}/{last}") as file:
            return file.read(), run.stdout


def main():
    cutegen, ladder, out = sys.argv[1:4]
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    os.environ.setdefault("CUTEGEN_HOME", root)
    os.makedirs(out, exist_ok=True)
    for row in sys.argv[4:] or ROWS:
        text, said = climb(ladder, describe(cutegen, f"{root}/examples/{row}.py"), ROWS[row])
        print(said, end="", flush=True)
        with open(f"{out}/{row}.cu", "w") as file:
            file.write(text)


if __name__ == "__main__":
    main()
