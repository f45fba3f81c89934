"""Does it matter where two gigabytes lie? One pointwise kernel of PyTorch's, one input, outputs in other places.

    python3 bench/gpu/place.py [ELEMENTS [PLACES]]

What exports.py does before it captures a graph is done here too, so that the memory is given out in the same order; then so many graphs are
captured, each with an output of its own. All are timed three times over, replayed and by a call that writes into the same memory: what is slow
each time is slow by its place, what is slow once was disturbed. Cold L2, medians in us.
"""
import sys

import torch

n = int(sys.argv[1]) if len(sys.argv) > 1 else 4096 * 131072
places = int(sys.argv[2]) if len(sys.argv) > 2 else 8
x = torch.rand(n, device="cuda")


def median_us(call, runs=20):
    flush = torch.zeros(64 << 20, device="cuda")
    pairs = []
    for _ in range(runs + 3):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.amax()
        torch.cuda._sleep(1_000_000)
        begin.record()
        call()
        end.record()
        pairs.append((begin, end))
    torch.cuda.synchronize()
    return sorted(1000 * b.elapsed_time(e) for b, e in pairs[3:])[runs // 2]


def distance(got, want):
    return ((got.double() - want.double()).abs().max() / want.double().abs().max()).item()


def captured():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.sigmoid(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = torch.sigmoid(x)
    return graph, made


got, want = torch.sigmoid(x), torch.sigmoid(x)
distance(got, want)
side = torch.cuda.Stream()
with torch.cuda.stream(side):
    late = x.clone()
    torch.sigmoid(late)
side.synchronize()
kept = [captured()]
print(f"input {x.data_ptr():#x}; the first graph before the others are captured: {median_us(kept[0][0].replay):.1f} us", flush=True)
kept += [captured() for _ in range(places - 1)]
for turn in range(3):
    for number, (graph, y) in enumerate(kept):
        print(f"turn {turn + 1} graph {number + 1} {y.data_ptr():#x} {median_us(graph.replay):.1f} us, called {median_us(lambda: torch.sigmoid(x, out=y)):.1f} us", flush=True)
