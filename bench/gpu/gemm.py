"""Lines of the table of matrix products, from what `cutegen eval --json` printed.

    python3 bench/gpu/gemm.py OUT/ROW.json ...                        a line for each
    python3 bench/gpu/gemm.py --table [--torch FILE] OUT/ROW.json ...  the table of gemm.md; FILE: what gemm_torch.py printed
"""
import argparse
import json
import os
import re

# Row: title, what was asked for at least, the limit estimated before the work began (ratios to eager).
ROWS = {
    "square_matmul": ("square 4096", 4.2, 5.2),
    "symmetric_matmul": ("symmetric 4096", 4.2, 5.2),
    "transposed_a_matmul": ("A transposed", 4.2, 5.2),
    "transposed_b_matmul": ("B transposed", 4.2, 5.2),
    "transposed_both_matmul": ("both transposed", 4.2, 5.2),
    "matmul": ("standard 2048x8192x4096", 3.9, 5.2),
    "irregular_matmul": ("irregular 8205x2949x5921", 4.6, 6.1),
    "batched_matmul": ("batched 128 x 512x1024x2048", 2.8, 5.2),
    "tensor3d_matmul": ("3-D 16384x2048x768", 3.5, 5.4),
    "tensor4d_matmul": ("4-D 1048576x256x768", 4.4, 6.7),
    "large_k_matmul": ("large K 256x524288x256", 2.6, 5.0),
    "small_k_matmul": ("small K 32768x64x32768", 2.6, 4.0),
    "tall_skinny_matmul": ("tall-skinny 32768x32x32768", 2.0, 2.6),
    "upper_triangular_matmul": ("upper triangular 4096", 12, 20),
    "lower_triangular_matmul": ("lower triangular 4096", 12, 20),
    "linear_gelu": ("Linear+GELU 4096x2048x8192", 2.0, None),
    "linear_residual": ("Linear+bias+residual 4096", 2.0, None),
    "mlp": ("MLP 1024 x 512, 1024, 1024, 16", 2.0, None),
    "half_matmul": ("fp16 square 4096", 0.9, None),
    "bfloat16_matmul": ("bf16 square 4096", 0.9, None),
    "half_batched_matmul": ("fp16 batched", 0.9, None),
    "bfloat16_batched_matmul": ("bf16 batched", 0.9, None),
    "half_linear_gelu": ("fp16 Linear+GELU", 0.9, None),
    "bfloat16_linear_gelu": ("bf16 Linear+GELU", 0.9, None),
}


def read(path):
    with open(path) as file:
        d = json.load(file)
    name, m = os.path.basename(path)[:-5], d.get("measurement")
    if d.get("verdict") != "pass" or not m:
        print(f"| {name} | {d.get('verdict')}: {str(d.get('summary'))[:90]} |")
        return None
    return name, m, {b["name"]: b["cold_us"] for b in m["baselines"] if b.get("cold_us")}, d.get("accuracy"), d


def line(path):
    found = read(path)
    if not found:
        return
    name, m, base, a, _ = found
    ours = m["time_us"]
    ratios = " ".join(f"{n} {t / ours:.2f}" for n, t in base.items())
    limit = f"{m['floor_us'] / ours:.2f}" if m.get("floor_us") else "-"
    error = f"{a['rms_rel']:.2g} (eager {a['reference']['rms_rel']:.2g})" if a else "-"
    print(f"| {name} | {ours:.1f} us | {ratios} | {limit} of the limit | rms {error} |")


def torch_ratios(path):
    """ROW: torch.compile's ratio and TF32's, as text."""
    out = {}
    with open(path) as file:
        for text in file:
            found = re.match(r"(\w+) eager \S+ tf32 \S+ \((\S+)\) compile \S+ \((\S+)\)", text)
            if found:
                out[found[1]] = (found[3], found[2])
    return out


def row(name, d, torch=None):
    """A row of the table; torch.compile and TF32 from the same run, or as gemm_torch.py found them."""
    title, least, limit = ROWS[name]
    m, a = d["measurement"], d["accuracy"]
    base = {b["name"]: b["cold_us"] for b in m["baselines"] if b.get("cold_us")}
    ratio = base["eager"] / m["time_us"]
    shown = f"{ratio:.2f}" if ratio >= least else f"**{ratio:.2f}**"
    part = f"{ratio / limit:.2f}" if limit else ""
    beside = [f"{base['eager'] / base[b]:.2f}" if b in base else "" for b in ("compile", "eager tf32")]
    compiled, tf32 = (torch or {}).get(name, beside)
    error, eager = (f"{x['max_rel']:.1e} / {x['rms_rel']:.1e}" for x in (a, a["reference"]))
    return f"| {title} | {m['time_us']:.0f} | {base['eager']:.0f} | {shown} | {least} | {part} | {compiled} | {tf32} | {error} | {eager} |"


def table(paths, torch):
    print("| row (M x K x N) | us | eager us | ratio | at least | of the limit | compile | TF32 | error | eager's error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    rows = {found[0]: found[4] for found in map(read, paths) if found}
    for name in ROWS:
        if name in rows:
            print(row(name, rows[name], torch))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--torch")
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args()
    if args.table:
        table(args.paths, torch_ratios(args.torch) if args.torch else {})
    else:
        for path in args.paths:
            line(path)


if __name__ == "__main__":
    main()
