"""How accurate cuBLAS' fp32 products are by size: where it divides K its errors are small. Max and rms relative to |A||B|, uniform inputs.

    python3 bench/gpu/gemm_map.py [SCALE]          a line per size: M K N, how many, and the errors of each form; SCALE: of all sizes
"""
import sys

import torch

torch.backends.cuda.matmul.allow_tf32 = False
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTHS = [256, 320, 512, 768, 1000, 1536, 2048, 3072, 4096, 8192, 16384]
SQUARES = [*range(256, 2049, 128), 2304, 2560, 3072, 3584, 4096]
OTHERS = [(128, 4096), (256, 4096), (512, 2048), (512, 4096), (768, 4096), (1024, 2048), (1024, 4096), (2048, 4096), (1536, 2048),
          (1200, 500), (1000, 1000), (900, 1300), (64, 8192), (4096, 128), (4096, 512), (2048, 768), (3000, 1000), (1300, 2900)]


def look(M, K, N, L=1):
    batch = (L,) if L > 1 else ()
    A, B = torch.rand(*batch, M, K, device=DEVICE), torch.rand(*batch, K, N, device=DEVICE)
    truth = A.double() @ B.double()  # of positive terms: |A||B| as well
    At, Bt = A.mT.contiguous(), B.mT.contiguous()
    forms = {"nn": lambda: A @ B, "nt": lambda: A @ Bt.mT, "tn": lambda: At.mT @ B, "tt": lambda: At.mT @ Bt.mT}
    if L == 1:
        zero = torch.zeros(N, device=DEVICE)
        forms["linear"] = lambda: torch.nn.functional.linear(A, Bt, zero)
    words = []
    for form, product in forms.items():
        error = (product().double() - truth).abs() / truth
        words.append(f"{form} {error.max().item():.2e} {error.square().mean().sqrt().item():.2e}")
    print(M, K, N, L, " ".join(words), flush=True)


def main():
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    sizes = [(m, k, n, 1) for m, n in [(n, n) for n in SQUARES] + OTHERS for k in LENGTHS]
    sizes += [(n, k, n, L) for L in (2, 4, 8, 16) for n in (128, 256, 512, 768, 1024) for k in (512, 1536, 4096)]
    for M, K, N, L in sizes:
        look(int(M * scale), int(K * scale), int(N * scale), L)


main()
