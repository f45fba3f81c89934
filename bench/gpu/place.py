"""Does it matter where two gigabytes lie? One pointwise kernel of PyTorch's, one input, outputs in other places.

    python3 bench/gpu/place.py [ELEMENTS [PLACES]]

Per output: microseconds (median, cold L2), where it lies. Half of the outputs are from a CUDA graph's own pool, as those of a captured module are.
"""
import sys

import torch

n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096 * 131072
places = int(sys.argv[2]) if len(sys.argv) > 2 else 16
x = torch.rand(n, device="cuda")
flush = torch.zeros(64 << 20, device="cuda")


def median_us(call, runs=12):
    pairs = []
    for _ in range(runs + 2):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.amax()
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return sorted(1000 * b.elapsed_time(e) for b, e in pairs[2:])[runs // 2]


def from_graph():
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = torch.neg(x)
    return graph, made


kept = []
torch.neg(x[:1024])
for k in range(places):
    graph, y = from_graph() if k % 2 else (None, torch.empty_like(x))
    kept.append((graph, y))
for again in range(2):
    for k, (graph, y) in enumerate(kept):
        print(f"{'again ' if again else ''}{'graph' if graph else 'plain'} {y.data_ptr():#x} {median_us(lambda: torch.neg(x, out=y)):.1f} us", flush=True)
