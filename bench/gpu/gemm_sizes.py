"""Kernels and jobs for the accuracy of fp32 products of many sizes beside cuBLAS'. Needs no GPU; gemm_check.py takes the jobs.

    python3 bench/gpu/gemm_sizes.py LADDER OUT [SET...]               OUT/NAME.cu and OUT/jobs; SET: small middle odd; all
    cd OUT && for k in *.cu; do nvcc -std=c++17 -O3 --expt-relaxed-constexpr -shared -Xcompiler -fPIC -DCUTEGEN_EXPORT=1 \\
        -arch sm_90a -I INCLUDE -I CUTLASS -o ${k%.cu}.so $k; done
    TIME=0 python3 bench/gpu/gemm_check.py jobs

LADDER is build/release/tests/expert/expert_ladder. Sizes whose kernels have the same text share one; the ladder is climbed
(a second) once for all sizes between the same LIMITS.
"""
import hashlib
import os
import sys

from gemm_kernels import BOTH, CLUSTER, FUSE, WIDE, climb

FORMS = ("nn", "nt", "tn", "tt")
KINDS = "uniform,normal,wide,spiky"
SMALL = [(n, n) for n in (256, 288, 320, 384, 448, 512, 576, 640, 704, 768)] + [(128, 512), (256, 1024)]
SMALL_K = [64, 128, 192, 256, 320, 384, 512, 768, 1000, 1024, 2048, 4096]
MIDDLE = [(n, n) for n in (832, 960, 1000, 1024, 1152, 1280, 1408, 1536, 1664, 1792, 1920, 2048, 2304, 2560, 3072)] + [
    (1200, 500), (500, 1300), (900, 1300), (2048, 768), (768, 2048), (4096, 512), (512, 4096), (1024, 2048), (1536, 2048),
    (3000, 1000), (1000, 3000), (768, 4096), (1300, 2900), (1024, 4096), (2048, 4096)]
MIDDLE_K = [256, 320, 512, 768, 1000, 1024, 1280, 1536, 2048, 3072, 4096, 8192]
# Where src/expert/match/gemm.c and gemm_sm90.c change their minds: tiles of 128x256, K.
LIMIT_TILES, LIMIT_K = [18, 66, 110, 220, 320], [31, 63, 64, 191, 255, 319, 1023, 1024, 2047, 4096, 8192, 16383]
ODD = [(1151, 1027), (1537, 1533), (1801, 1799)]
ODD_K = [511, 1001, 1537, 2049, 4097]


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


def sizes(sets):
    for name, results, lengths in (("small", SMALL, SMALL_K), ("middle", MIDDLE, MIDDLE_K), ("odd", ODD, ODD_K)):
        for M, N in results if not sets or name in sets else []:
            for K in lengths:
                yield M, K, N


def kind_of(M, K, N, form):
    """Sizes of one kind have the same kernel."""
    small = M * K * N < 1 << 26 or min(M, N) < 64  # on the FMA units
    tiles = (-(-M // 64) * -(-N // 64) if small else -(-M * N // (128 * 256)))
    return form, small, M % 4, K % 4, N % 4, sum(tiles > x for x in LIMIT_TILES), sum(K > x for x in LIMIT_K)


def main():
    ladder, out = sys.argv[1:3]
    os.environ.setdefault("CUTEGEN_HOME", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    os.makedirs(out, exist_ok=True)
    names = {}
    with open(f"{out}/jobs", "w") as jobs:
        for form in FORMS:
            for M, K, N in sizes(sys.argv[3:]):
                kind = kind_of(M, K, N, form)
                if kind not in names:
                    narrow = M * N <= 66 * 128 * 256
                    text, _ = climb(ladder, describe(M, K, N, form), [FUSE, BOTH] + ([WIDE, CLUSTER] if narrow else []))
                    names[kind] = hashlib.sha256(text.encode()).hexdigest()[:10]
                    with open(f"{out}/{names[kind]}.cu", "w") as file:
                        file.write(text)
                print(f"./{names[kind]}.so {M} {K} {N} 1 {form} {KINDS}", file=jobs)


main()
