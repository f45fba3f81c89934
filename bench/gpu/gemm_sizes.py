"""Kernels and jobs for the accuracy of fp32 products of many sizes beside cuBLAS'. Needs no GPU; gemm_check.py takes the jobs.

    python3 bench/gpu/gemm_sizes.py LADDER OUT                        OUT/NAME.cu and OUT/jobs
    cd OUT && for k in *.cu; do nvcc -std=c++17 -O3 --expt-relaxed-constexpr -shared -Xcompiler -fPIC -DCUTEGEN_EXPORT=1 \\
        -arch sm_90a -I INCLUDE -I CUTLASS -o ${k%.cu}.so $k; done
    TIME=0 python3 bench/gpu/gemm_check.py jobs

LADDER is build/release/tests/expert/expert_ladder. Sizes whose kernels have the same text share one.
"""
import hashlib
import os
import sys

from gemm_kernels import BOTH, CLUSTER, FUSE, WIDE, climb

SQUARES = [448, 512, 576, 640, 704, 768, 832, 896, 960, 1000, 1024, 1088, 1152, 1216, 1280, 1408, 1536, 1664, 1792, 2048]
OTHERS = [(1200, 500), (500, 1300), (900, 1300), (2048, 768), (768, 2048), (4096, 512), (256, 4096), (512, 2048), (1024, 2048), (2048, 1024)]
LENGTHS = [256, 320, 512, 768, 1000, 1024, 1536, 2048, 4096]


def tensor(rows, columns, swapped=False):
    return {"dtype": "f32", "shape": [rows, columns], "strides": [1, rows] if swapped else [columns, 1]}


def describe(M, K, N, form):
    """What `cutegen describe` says of a product; form: nn nt tn tt."""
    inputs, graph, nodes = [], [], []
    for i, (rows, columns) in enumerate(((M, K), (K, N))):
        stored = tensor(columns, rows) if form[i] == "t" else tensor(rows, columns)
        inputs.append({"name": "AB"[i], "role": "input", **stored})
        graph.append({"id": i, "op": "input", "index": i, "args": [], "kwargs": {}, **stored})
    for i, (rows, columns) in enumerate(((M, K), (K, N))):
        nodes.append(i)
        if form[i] == "t":
            nodes[i] = len(graph)
            graph.append({"id": nodes[i], "op": "aten.permute.default", "args": [{"node": i}, {"ints": [1, 0]}], "kwargs": {},
                          **tensor(rows, columns, swapped=True)})
    last = len(graph)
    graph.append({"id": last, "op": "aten.mm.default", "args": [{"node": n} for n in nodes], "kwargs": {}, **tensor(M, N)})
    graph.append({"op": "output", "args": [{"node": last}], "index": 0})
    return {"name": "product", "inputs": inputs, "scalars": [], "outputs": [{"name": "out0", "role": "output", **tensor(M, N)}],
            "class": "gemm", "graph": graph}


def main():
    ladder, out = sys.argv[1:3]
    os.environ.setdefault("CUTEGEN_HOME", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    os.makedirs(out, exist_ok=True)
    with open(f"{out}/jobs", "w") as jobs:
        for form in ("nn", "nt", "tn", "tt"):
            for M, N in [(n, n) for n in SQUARES] + OTHERS:
                for K in LENGTHS:
                    text, _ = climb(ladder, describe(M, K, N, form), [WIDE, CLUSTER, FUSE, BOTH])
                    name = hashlib.sha256(text.encode()).hexdigest()[:10]
                    with open(f"{out}/{name}.cu", "w") as file:
                        file.write(text)
                    print(f"./{name}.so {M} {K} {N} 1 {form} uniform,normal", file=jobs)


main()
