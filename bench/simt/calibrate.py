#!/usr/bin/env python3
"""Fits the constants of the modelled time on the F cases and checks them on the C cases.

    calibrate.py SIMT_MODEL counters.jsonl times.jsonl [--fit SECONDS] [--plot FILE.svg] [--table]

Without --fit the product's own constants are judged. Nothing of the C cases is
looked at while fitting. Plain Python, no packages.
"""
import json
import math
import random
import subprocess
import sys
import time

NAMES = ["blend", "sass", "sass_int", "sass_div", "sass_sfu", "l1_again", "l2_again", "alone", "store_line", "part_store",
         "far", "near", "l1_wait", "shared_wait", "arith_wait", "sfu_wait", "tensor_wait", "barrier_wait", "start",
         "atomic_clocks", "atomic_lane", "tensor_share"]
START = [4, 0.8, 0.6, 10, 2, 0.3, 1, 1, 4, 2, 750, 270, 40, 25, 2, 9, 18, 30, 700, 18, 1.2, 0.65]
# What the hardware can mean by them: a fit may not leave these.
LOW = [1.5, 0.5, 0.3, 4, 0, 0.05, 0.5, 0.5, 1, 1, 500, 200, 30, 20, 1, 4, 8, 15, 100, 5, 0.3, 0.55]
HIGH = [12, 1.2, 1.2, 20, 8, 1.0, 1.2, 3, 6, 5, 1000, 350, 45, 40, 4.5, 20, 35, 120, 2000, 60, 4, 0.8]


class Model:
    def __init__(self, program, counters, times):
        self.p = subprocess.Popen([program, counters, times], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, k):
        self.p.stdin.write((" ".join("%g" % x for x in k) if k else "") + "\n")
        self.p.stdin.flush()
        words = self.p.stdout.readline().split()
        return [float(w) for w in words[::2]], words[1::2]


def ranks(v):
    order = sorted(range(len(v)), key=lambda i: v[i])
    r = [0] * len(v)
    for i, j in enumerate(order):
        r[j] = i
    return r


def spearman(a, b):
    n = len(a)
    if n < 2:
        return 1.0
    ra, rb = ranks(a), ranks(b)
    return 1 - 6 * sum((x - y) ** 2 for x, y in zip(ra, rb)) / (n * (n * n - 1))


def loss(got, measured, rows):
    total = 0
    for i in rows:
        d = abs(math.log(got[i] / measured[i]))
        total += d * d if d < 0.7 else 1.4 * d - 0.49
    return total / len(rows)


def fit(model, measured, rows, seconds):
    rng = random.Random(1)
    best = list(START)
    least = loss(model.ask(best)[0], measured, rows)
    end, step = time.time() + seconds, 0.5
    while time.time() < end:
        k = list(best)
        for i in rng.sample(range(len(k)), rng.choice([1, 1, 2, 3])):
            k[i] = min(HIGH[i], max(LOW[i], k[i] * math.exp(rng.gauss(0, step)) if k[i] > 0 else rng.uniform(LOW[i], HIGH[i])))
        now = loss(model.ask(k)[0], measured, rows)
        if now < least:
            best, least = k, now
        step = 0.05 + 0.45 * max(0, (end - time.time()) / seconds)
    return best


def judge(name, got, measured, rows, tasks):
    ratio = sorted(got[i] / measured[i] for i in rows)
    print("%-8s %2d kernels: Spearman %.3f, median ratio %.2f, within a factor of 2: %d" % (
        name, len(rows), spearman([got[i] for i in rows], [measured[i] for i in rows]), ratio[len(ratio) // 2],
        sum(1 for r in ratio if 0.5 <= r <= 2)))


def plot(path, got, measured, rows):
    w, lo, hi = 640, math.log10(2), math.log10(max(max(got), max(measured)) * 2)
    at = lambda v: 60 + (math.log10(v) - lo) / (hi - lo) * (w - 90)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (w, w),
           '<rect width="100%" height="100%" fill="white"/>']
    line = lambda f, dash: out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999" stroke-dasharray="%s"/>' % (
        at(10 ** lo), w - at(10 ** lo * f), at(10 ** hi / max(f, 1)), w - at(10 ** hi / max(f, 1) * f), dash))
    line(1, "")
    line(2, "4 4")
    line(0.5, "4 4")
    for d in range(1, int(hi) + 1):
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%g us</text>' % (at(10 ** d), w - 30, 10 ** d))
        out.append('<text x="50" y="%.1f" text-anchor="end">%g</text>' % (w - at(10 ** d) + 4, 10 ** d))
    for i, r in enumerate(rows):
        colour = {"F": "#1f77b4", "C": "#d62728", "N": "#2ca02c"}[r["set"]]
        out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity="0.7"><title>%s: measured %.1f, modelled %.1f us</title></circle>' % (
            at(measured[i]), w - at(got[i]), colour, r["kernel"], measured[i], got[i]))
    out.append('<text x="%d" y="%d" text-anchor="middle">measured on an H200</text>' % (w // 2, w - 10))
    out.append('<text x="16" y="%d" transform="rotate(-90 16 %d)" text-anchor="middle">modelled by simt</text>' % (w // 2, w // 2))
    out.append('<text x="80" y="30" fill="#1f77b4">fitted</text><text x="80" y="46" fill="#d62728">not looked at while fitting</text><text x="80" y="62" fill="#2ca02c">measured after the model was final</text></svg>')
    open(path, "w").write("\n".join(out) + "\n")


def main():
    args = sys.argv[1:]
    flag = lambda name: args[args.index(name) + 1] if name in args else None
    rows = [json.loads(line) for line in open(args[2]) if line.strip()]
    measured = [r["cold_us"] for r in rows]
    model = Model(args[0], args[1], args[2])
    fitted = [i for i, r in enumerate(rows) if r["set"] == "F"]
    checked = [i for i, r in enumerate(rows) if r["set"] == "C"]
    k = fit(model, measured, fitted, float(flag("--fit"))) if "--fit" in args else None
    if k:
        print("\n".join("    .%s = %.3g," % x for x in zip(NAMES, k)))
    got, bound = model.ask(k)
    tasks = sorted({r["task"] for r in rows})
    judge("fitted", got, measured, fitted, tasks)
    judge("checked", got, measured, checked, tasks)
    fresh = [i for i, r in enumerate(rows) if r["set"] == "N"]
    if fresh:
        judge("new", got, measured, fresh, tasks)
    judge("all", got, measured, list(range(len(rows))), tasks)
    for t in tasks:
        mine = [i for i, r in enumerate(rows) if r["task"] == t]
        best = min(mine, key=lambda i: measured[i])
        order = sorted(mine, key=lambda i: got[i])
        print("%-10s %s best measured is %s, number %d of %d modelled; Spearman %.2f" % (
            t, rows[best]["set"], rows[best]["kernel"], order.index(best) + 1, len(mine),
            spearman([got[i] for i in mine], [measured[i] for i in mine])))
    if "--table" in args:
        for i, r in enumerate(rows):
            print("%s %-18s %-14s measured %9.1f  modelled %9.1f  %5.2f  %s" % (
                r["set"], r["kernel"], r["grid"], measured[i], got[i], got[i] / measured[i], bound[i]))
    if flag("--plot"):
        plot(flag("--plot"), got, measured, rows)


main()
