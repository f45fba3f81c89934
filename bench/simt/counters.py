#!/usr/bin/env python3
"""simt's counters beside ncu's: counters.py counters.jsonl NCU [--all]

NCU is calibrate.sh's folder with ncu*.csv, or the short table this wrote from one (--short).
One row per kernel: simt / ncu. Plain Python, no packages.
"""
import csv
import glob
import json
import os
import sys

SHORT = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": "load_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": "load_sectors",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum": "store_requests",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum": "store_sectors",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": "wavefronts",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": "conflicts",
    "smsp__inst_executed.sum": "instructions",
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": "ffma",
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": "fadd",
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": "fmul",
    "smsp__sass_inst_executed_op_global_ld.sum": "ldg",
    "smsp__sass_inst_executed_op_global_st.sum": "stg",
    "smsp__sass_inst_executed_op_shared_ld.sum": "lds",
    "smsp__sass_inst_executed_op_shared_st.sum": "sts",
    "sm__inst_executed_pipe_fp64.sum": "fp64",
    "sm__inst_executed_pipe_xu.sum": "xu",
    "dram__bytes_read.sum": "dram_read",
    "dram__bytes_write.sum": "dram_write",
    "lts__t_sectors_op_read.sum": "l2_read",
    "lts__t_sectors_op_write.sum": "l2_write",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum": "l1_hits",
}


def read_csv(path):
    lines = [line for line in open(path) if not line.startswith("==")]
    rows = list(csv.reader(lines))
    return rows[0], [r for r in rows[1:] if len(r) == len(rows[0])]


def load(where):
    """A list of {"kernel", short name: number}, in the order of the cases."""
    if not os.path.isdir(where):
        head, rows = read_csv(where)
        return [{h: (v if h == "kernel" else float(v)) for h, v in zip(head, r)} for r in rows]
    out = []
    for path in sorted(glob.glob(where + "/ncu*.csv")):
        head, rows = read_csv(path)
        name = head.index("Kernel Name")
        rows = [r for r in rows if r[name] and r[name] != "flush"]
        out = out or [{"kernel": r[name]} for r in rows]
        for to, r in zip(out, rows):
            to.update({SHORT[h]: float(v.replace(",", "") or 0) for h, v in zip(head, r) if h in SHORT})
    return out


def simt_side(c):
    """What simt says, in ncu's words."""
    threads, warps = c["thread_instructions_by_class"], c["warp_instructions_by_class"]
    # ncu's wavefronts of "shared memory" are of the pipe it shares: a shuffle takes one, a barrier of a block one,
    # and a warp one for each of threadIdx.x and .y.
    per_warp = 2 if c["block"][1] > 1 else 1
    # An access whose every lane is predicated off goes through it, too, though ncu counts no instruction.
    off = max(0, warps["ld_shared"] + warps["st_shared"] - c["shared_requests"])
    beside = off + warps["shuffle"] + c["barriers"] + per_warp * c["blocks"] * ((c["threads_block"] + 31) // 32)
    return {
        "load_requests": c["global_load_requests"], "load_sectors": c["global_load_sectors"],
        "store_requests": c["global_store_requests"], "store_sectors": c["global_store_sectors"],
        "wavefronts": c["shared_wavefronts"] + beside, "conflicts": c["shared_conflicts"],
        "ffma": threads["fp32_fma"], "fadd": threads["fp32_add"], "fmul": threads["fp32_mul"],
        "ldg": warps["ld_global"], "stg": warps["st_global"], "lds": warps["ld_shared"], "sts": warps["st_shared"],
        "fp64": warps["fp64"], "xu": warps["sfu"] + warps["division"] + warps["cvt"], "instructions": c["warp_instructions"],
    }


SHOWN = ["load_requests", "load_sectors", "store_sectors", "wavefronts", "conflicts", "ffma", "fadd", "fmul", "fp64", "lds", "sts",
         "instructions"]


def main():
    args = sys.argv[1:]
    if args[0] == "--short":
        rows = load(args[1])
        w = csv.writer(sys.stdout, lineterminator="\n")
        names = [n for n in SHORT.values() if n in rows[0]]
        w.writerow(["kernel"] + names)
        for r in rows:
            w.writerow([r["kernel"]] + ["%.0f" % r[n] for n in names])
        return
    theirs = load(args[1])
    ours = [json.loads(line) for line in open(args[0]) if line.strip()][: len(theirs)]
    same, used = {}, {}
    print("| kernel | " + " | ".join(SHOWN) + " |\n|" + "---|" * (len(SHOWN) + 1))
    for c, n in zip(ours, theirs):
        assert c["kernel"] == n["kernel"], (c["kernel"], n["kernel"])
        s, cells = simt_side(c), []
        for k in SHOWN:
            got, want = s[k], n[k]
            if not got and not want:
                cells.append("")
                continue
            used[k] = used.get(k, 0) + 1
            # Conflicts are a part of the wavefronts, and ncu's has other waiting in it: as that part it is compared.
            close = abs(got - want) <= 0.02 * (n["wavefronts"] if k == "conflicts" else want)
            same[k] = same.get(k, 0) + bool(close)
            cells.append("=" if close else "%.2f" % (got / want) if want else "%.2g : 0" % got)
        print("| %s %dx%d | %s |" % (c["kernel"], c["grid"][0], c["block"][0] * c["block"][1], " | ".join(cells)))
    print()
    for k in SHOWN:
        print("%-14s within 2 %% in %d of %d kernels" % (k, same.get(k, 0), used.get(k, 0)))


main()
