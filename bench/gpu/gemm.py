"""Lines of the table of matrix products, from what `cutegen eval --json` printed.

    python3 bench/gpu/gemm.py OUT/ROW.json ...
"""
import json
import os
import sys

for path in sys.argv[1:]:
    with open(path) as file:
        d = json.load(file)
    name, m, a = os.path.basename(path)[:-5], d.get("measurement"), d.get("accuracy")
    if d.get("verdict") != "pass" or not m:
        print(f"| {name} | {d.get('verdict')}: {str(d.get('summary'))[:90]} |")
        continue
    base = {b["name"]: b["cold_us"] for b in m["baselines"] if b.get("cold_us")}
    ours = m["time_us"]
    ratios = " ".join(f"{n} {t / ours:.2f}" for n, t in base.items())
    limit = f"{m['floor_us'] / ours:.2f}" if m.get("floor_us") else "-"
    error = "-"
    if a:
        error = f"{a['rms_rel']:.2g} (eager {a['reference']['rms_rel']:.2g})"
    print(f"| {name} | {ours:.1f} us | {ratios} | {limit} of the limit | rms {error} |")
