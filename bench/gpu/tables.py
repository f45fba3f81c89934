"""Rows of memory.md, gemm.md and conv.md, judged: every column of a row from one run, torch.compile and all settings included.

    python3 bench/gpu/tables.py prepare CUTEGEN FOLDER WHAT...          tasks, kernels and their cache into FOLDER; needs no GPU
    python3 bench/gpu/tables.py judge CUTEGEN FOLDER OUT SECONDS [WHAT...]  OUT/NAME.json, a line for each; those there are skipped
    python3 bench/gpu/tables.py show OUT...                             what was judged, with every baseline, as Markdown
    python3 bench/gpu/tables.py write OUT...                            the rows into memory.md and gemm.md; then bench/results.py

WHAT is memory, further, halves (the three tables of memory.md), gemm, conv (the shapes of conv.py: under PyTorch's defaults, and
~strict), one of their names, or TASK.py. `prepare` builds the kernel that `cutegen run` begins with and DEPTH more (0), JOBS
tasks at a time; what is there already stays. `judge` asks for `cutegen eval --all-baselines` of each, JOBS (3) at a time;
judged again later, in another folder OUT, a row counts as the last folder has it. Of several kernels the fastest that passes counts.
A row that was not judged stays as it is in the document, and is named.
"""
import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))
import conv  # noqa: E402
import gemm  # noqa: E402
import memory  # noqa: E402

GROUPS = {
    "memory": memory.ACTIVATIONS + memory.ISSUE, "further": memory.OTHERS, "halves": memory.HALVES, "gemm": list(gemm.ROWS),
    "conv": [name + setting for name in conv.SHAPES for setting in ("", "~strict")],
}
TITLES = {  # in memory.md
    "softmax": "Softmax 4096x131072", "log_softmax": "LogSoftmax 4096x131072", "matrix_scalar": "matrix-scalar",
    "matvec": "matrix-vector 2048x1048576", "diagonal_matmul": "diag(A) @ B, 4096", "layer_norm_3d": "LayerNorm (16,64,256,256)",
    "rms_norm": "RMSNorm dim 1 (112,64,512,512)", "max_dim": "max dim 1 (128,4096,4095)", "cross_entropy": "cross-entropy (32768,4096)",
    "cumsum": "cumsum (32768,32768)",
}
BASELINES = ("eager", "eager graph", "compile", "eager defaults", "eager strict", "eager tf32")


def names_of(words):
    return [name for word in words for name in GROUPS.get(word, [word])]


def write_task(folder, name):
    """The file of a row, in FOLDER/tasks."""
    path = folder / "tasks" / f"{pathlib.Path(name).stem}.py"
    if name.endswith(".py"):
        shutil.copyfile(name, path)
    elif name.partition("~")[0] in conv.SHAPES:
        conv.tasks(folder / "tasks", [name.partition("~")[0]])
        (folder / "tasks" / f"{name.partition('~')[0]}.py").replace(path)
    else:
        said = argparse.Namespace(examples=ROOT / "examples", out=folder / "tasks")
        path.write_text(pathlib.Path(memory.task_path(said, name)).read_text())
    return path


def setting_of(name):
    return ["--baseline", "strict"] if name.endswith("~strict") else []


def build(cutegen, folder, name):
    task, begin = write_task(folder, name), time.time()
    if not (folder / "kernels" / f"{task.stem}.cu").exists():
        words = [cutegen, "build", task, "--device", "for:H200", "--depth", os.environ.get("DEPTH", "0"), "--build-deadline", "900"]
        done = subprocess.run([*words, *setting_of(name), "--out", folder / "kernels"], capture_output=True, text=True)
        return f"{(done.stdout + done.stderr).strip()[-200:]}, {time.time() - begin:.0f} s in all"
    return f"{name}: is there"


def prepare(cutegen, folder, words):
    folder = pathlib.Path(folder)
    (folder / "tasks").mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CUTEGEN_CACHE", str(folder.resolve() / "cache"))
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "1"))) as pool:
        for said in pool.map(lambda name: build(cutegen, folder, name), names_of(words)):
            print(said, flush=True)
    for extra in [*folder.glob("kernels/*.cubin"), *folder.glob("kernels/*.json")]:
        extra.unlink()  # the cache has the code


def one(cutegen, folder, name, end):
    """The judge's answer for the fastest of a row's kernels."""
    best = None
    stem = pathlib.Path(name).stem
    others = [p for p in (folder / "kernels").glob(f"{stem}~*.cu") if re.fullmatch(r"\d+", p.stem[len(stem) + 1:])]
    for kernel in [folder / "kernels" / f"{stem}.cu", *others]:
        if not kernel.exists() or time.time() > end:
            continue
        begin = time.time()
        words = [cutegen, "eval", folder / "tasks" / f"{stem}.py", kernel, "--device", os.environ.get("DEVICE", "cuda:0"), "--all-baselines",
                 "--json", "--python", os.environ.get("CUTEGEN_PYTHON", sys.executable), *setting_of(name)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=max(30, end + 60 - begin))
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            answer = json.loads(lines[-1]) if lines else {"verdict": "no verdict", "summary": done.stderr[-300:]}
        except subprocess.TimeoutExpired:
            answer = {"verdict": "no verdict", "summary": "out of time"}
        answer |= {"seconds": time.time() - begin, "kernel": kernel.stem, "at": time.strftime("%Y-%m-%d")}
        if best is None or us_of(answer) < us_of(best):
            best = answer
    return best or {"verdict": "not run"}


def us_of(answer):
    return (answer.get("measurement") or {}).get("time_us") or float("inf") if answer.get("verdict") == "pass" else float("inf")


def base_of(answer):
    return {b["name"]: b["cold_us"] for b in (answer.get("measurement") or {}).get("baselines") or []}


def judge(cutegen, folder, out, seconds, words):
    folder, out, end = pathlib.Path(folder), pathlib.Path(out), time.time() + float(seconds)
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("CUTEGEN_CACHE", str(folder.resolve() / "cache"))
    os.environ.setdefault("CUTEGEN_RUNS", str(out.resolve() / "runs"))
    wanted = [n for n in names_of(words or GROUPS) if (folder / "kernels" / f"{pathlib.Path(n).stem}.cu").exists()]
    wanted = [n for n in wanted if not (out / f"{pathlib.Path(n).stem}.json").exists()]
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", "3"))) as pool:
        for name, answer in zip(wanted, pool.map(lambda name: one(cutegen, folder, name, end), wanted)):
            if us_of(answer) < float("inf"):
                (out / f"{pathlib.Path(name).stem}.json").write_text(json.dumps(answer, indent=1))
            print(line(pathlib.Path(name).stem, answer), f"{answer.get('seconds', 0):.0f} s", flush=True)


def line(name, answer):
    """A row with every baseline: times over ours."""
    us, base, m = us_of(answer), base_of(answer), answer.get("measurement") or {}
    if us == float("inf"):
        return f"| {name} | {answer['verdict']}: {str(answer.get('summary'))[:150]} |"
    accuracy = answer.get("accuracy") or {}
    ratios = [f"{base[b] / us:.2f}" if base.get(b) else "-" for b in BASELINES]
    errors = f"{accuracy.get('rms_rel', 0):.1e} / {(accuracy.get('reference') or {}).get('rms_rel', 0):.1e}"
    floor = f"{100 * m['floor_us'] / us:.0f} %" if m.get("floor_us") else "-"
    return f"| {name} | {us:.1f} | {' | '.join(ratios)} | {floor} | {answer.get('accuracy_class')} | {errors} |"


def answers_of(folders):
    """{name: answer}: the last folder's."""
    return {p.stem: json.loads(p.read_text()) for folder in folders for p in sorted(pathlib.Path(folder).glob("*.json"))}


def show(folders):
    print(f"| task | us | {' | '.join(BASELINES)} | of the floor | class | rms error / eager's |\n|---|---|{'---|' * len(BASELINES)}---|---|---|")
    found = answers_of(folders)
    for name, answer in found.items():
        print(line(name, answer))
    for what, names in {"all": list(found), **GROUPS}.items():
        means = []
        for baseline in BASELINES:
            ratios = [base_of(found[n])[baseline] / us_of(found[n]) for n in names if n in found and base_of(found[n]).get(baseline)]
            means += [f"{baseline} {math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f} of {len(ratios)}"] if ratios else []
        if means:
            print(f"\ngeomean over {what}: {', '.join(means)}")


def memory_row(name, answer):
    base = base_of(answer)
    compiled = {name: {"eager": base["eager"], "compile": base["compile"]}} if base.get("compile") else {}
    cells = memory.row(name, answer, compiled).split("|")[1:-2]  # without the largest relative error
    return "|" + "|".join([f" {TITLES.get(name, name)} ", *cells[1:]]) + "|"


def replace(document, rows):
    """Puts rows in the place of those with the same title; says which stayed."""
    lines, kept, inside = [], [], False
    for text in document.read_text().split("\n"):
        inside = text.startswith("<!-- results:") or (inside and text != "<!-- end -->")
        title = text.split("|")[1].strip() if inside and text.startswith("| ") else None
        if title in rows and rows[title].count("|") == text.count("|"):
            lines.append(rows.pop(title))
            continue
        if title in rows:
            print(f"{document.name}: {title}: {rows[title].count('|')} columns, not {text.count('|')}")
        kept += [title] if title and text.count("|") > 6 and title != "task" and not title.startswith("row (") else []
        lines.append(text)
    document.write_text("\n".join(lines))
    print(f"{document.name}: not judged, as they were: {', '.join(kept) or 'none'}")


def write(folders):
    found = {name: answer for name, answer in answers_of(folders).items() if us_of(answer) < float("inf")}
    rows = {name: memory_row(name, found[name]) for group in ("memory", "further", "halves") for name in GROUPS[group] if name in found}
    if rows:
        replace(HERE / "memory.md", {TITLES.get(name, name): row for name, row in rows.items()})
    rows = {gemm.ROWS[name][0]: gemm.row(name, found[name]) for name in gemm.ROWS if name in found}
    if rows:
        replace(HERE / "gemm.md", rows)


def main():
    what, *words = sys.argv[1:] or [""]
    if what == "prepare" and len(words) > 2:
        prepare(words[0], words[1], words[2:])
    elif what == "judge" and len(words) > 3:
        judge(*words[:4], words[4:])
    elif what in ("show", "write") and words:
        (show if what == "show" else write)(words)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
