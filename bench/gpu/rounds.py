"""How many processes and rounds a very short kernel needs: from the rounds of some judgements, how ten others would spread.

    for i in $(seq 15); do cutegen eval TASK.py KERNEL.cu --device cuda:0 -vv 2>log.$i; done
    python3 bench/gpu/rounds.py PROCESSES log.*

Rounds go round the PROCESSES (judge_measure.c: RUNNERS). What differs between rounds of one process is the place, what remains is the process.
Ten judgements are then drawn at random, a thousand times, for other numbers of processes and rounds.
"""
import random
import re
import statistics
import sys

processes = int(sys.argv[1])
judgements = [[float(us) for us in re.findall(r"round.* of the candidate: ([\d.]+) us", open(path).read())] for path in sys.argv[2:]]
groups = [v[p::processes] for v in judgements for p in range(processes)]
groups = [g for g in groups if len(g) > 1]
place = (sum(statistics.variance(g) for g in groups) / len(groups)) ** 0.5
rounds = statistics.mean(len(g) for g in groups)
process = max(statistics.variance(map(statistics.mean, groups)) - place**2 / rounds, 0) ** 0.5
middle_us = statistics.mean(us for g in groups for us in g)
print(f"{len(judgements)} judgements, mean {middle_us:.3f} us; standard deviation: places {place:.3f} us, processes {process:.3f} us")


def middle(v):
    v, cut = sorted(v), len(v) // 4
    return statistics.mean(v[cut : len(v) - cut])


random.seed(1)
for p, r in ((4, 3), (6, 2), (6, 4), (8, 3), (8, 4), (12, 2)):
    spreads = []
    for _ in range(1000):
        ten = [middle([e + random.gauss(0, place) for e in (random.gauss(middle_us, process) for _ in range(p)) for _ in range(r)]) for _ in range(10)]
        spreads.append((max(ten) - min(ten)) / middle_us)
    print(f"{p} processes of {r} rounds: spread of ten {statistics.median(spreads):.2%}, below 2 % in {sum(s < 0.02 for s in spreads) / 10:.0f} of 100 cases")
