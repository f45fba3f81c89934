"""What the tuner finds, on recipes with tunables and on a kernel that a model wrote: gain, compiles, share that is not tried.

    [DEVICE=simt] python3 bench/gpu/tuner.py CUTEGEN OUT [ROW...]        OUT/tuner.md; on simt times are modelled

The model is a replay: one reply with the kernel of tests/e2e/tune_test.sh, then STOP. Recipes run to the end of their ladder,
whose last steps have the tunables. The kernel before is the best one when the search began; the figures are those that src/loop/tune.c
prints at its end. TUNE: how many combinations at most (16).
"""
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import sizes  # noqa: E402

DEVICE = os.environ.get("DEVICE", "cuda:0")
WORDS = re.compile(r"tuned: (\d+) of (\d+) combinations tried, (\d+) violate a condition, (\d+) cannot win; ([\d.]+)x")
# row: task of sizes.py and its sizes on simt, or None for the model's kernel
ROWS = {
    "swish, a model's kernel": (None, {}),
    "max pool 2-D": ("max_pool2d", {"A": 2, "B": 4, "C": 64, "D": 64}),
    "max pool 2-D, f16": ("max_pool2d_f16", {"A": 2, "B": 4, "C": 64, "D": 64}),
    "product of 16 rows, f16": ("m16_nt_f16", {"M": 16, "K": 1024, "N": 512}),
    "product of 64 rows, f16": ("m64_nt_f16", {"M": 64, "K": 1024, "N": 512}),
}


def model_of(out):
    """A replay of one kernel with tunables."""
    text = (ROOT / "tests/e2e/tune_test.sh").read_text()
    kernel = text[text.index("// swish with tunables"):].partition("\nEND\n")[0]
    replies = [{"stage": "synthesize", "reply": f"CHANGE: a kernel with tunables\n```cuda\n{kernel}\n```\n"}] + [{"stage": "optimize", "reply": "STOP: done"}] * 2
    path = out / "model.jsonl"
    path.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
    return ["--model", f"replay:{path}"]


def run(cutegen, out, row):
    task, small = ROWS[row]
    if task is None:
        path, flags = ROOT / "examples/swish.py", model_of(out)
    else:
        if DEVICE == "simt":
            sizes.ROWS[task]["sizes"].update(small)
        sizes.write_task(out, task)
        path, flags = out / f"{task}.py", ["--order", "steps", *(["--simt-arch", "90a"] if DEVICE == "simt" else [])]
    words = [cutegen, "run", path, "--device", DEVICE, "--fresh", "--tune", os.environ.get("TUNE", "16"), "--compile", "none", "--no-report", "--json"]
    done = subprocess.run([*words, "--runs", out / "runs", *flags], capture_output=True, text=True)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    attempts = [e for e in events if e.get("event") == "attempt"]
    result = next((e for e in events if e.get("event") == "result"), {})
    found = WORDS.search(str(result.get("ended")))
    if not found:
        why = f"no search: the best kernel declares nothing, or as is said: {result['ended']}" if result.get("ended") else done.stderr.strip()[-150:]
        return f"| {row} | {why} |"
    tuned = [e for e in attempts if str(e.get("change")).startswith("tune: ")]
    passed = [e["measurement"]["time_us"] for e in attempts if e["judgement"]["verdict"] == "pass" and e not in tuned]
    tried, of, forbidden, pruned, gain = found.groups()
    chosen = min((e for e in tuned if e["judgement"]["verdict"] == "pass"), key=lambda e: e["measurement"]["time_us"], default=None)
    best, after = min(passed), result["best"]["measurement"]["time_us"]
    what = chosen["change"][6:] if chosen and chosen["measurement"]["time_us"] < best else "as it was"
    share = f"{100 * (int(forbidden) + int(pruned)) / int(of):.0f} %" if int(of) else "-"
    return f"| {row} | {int(of) + 1} | {tried} | {forbidden} | {pruned} | {share} | {best:.2f} | {after:.2f} | {gain} | {what} |"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    sizes.rows()
    lines = ["| kernel | combinations | compiled | violate a condition | cannot win | not tried | us before | us after | gain | chosen |", "|---|---|---|---|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    for row in sys.argv[3:] or ROWS:
        lines.append(run(sys.argv[1], out, row))
        print(lines[-1], flush=True)
        (out / "tuner.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
