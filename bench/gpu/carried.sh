#!/usr/bin/env bash
# carried.sh - tasks judged on a GPU with kernels that were built elsewhere: a row each, as soon as it is there.
#
#     bench/gpu/carried.sh CUTEGEN-TREE CACHE JOBS TASK.py...
#
# TREE is what setup/dist.sh packs; CACHE was filled by `cutegen build --device for:H200 TASK.py...` with the same tree and
# NVRTC. The kernel is the one that is predicted to be best. "build" tells whether it was found: compiling takes longer.
set -u
tree=$(readlink -f "$1") jobs=$3
CUTEGEN_CACHE=$(readlink -f "$2")
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_CACHE CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt CUTEGEN_DEVICE=cuda:0
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} cutegen=$tree/bin/cutegen

one() # TASK
{
    "$cutegen" run "$1" --depth 0 --draws 1 --compile none --tune 0 --no-report --json 2>&1 | python3 -c '
import json, sys
row, note = "no kernel", ""
for line in sys.stdin:
    try:
        r = json.loads(line)
    except ValueError:
        note = line.strip()[:150]
        continue
    if r.get("event") == "attempt":
        judged, m = r.get("judgement") or {}, r.get("measurement") or {}
        us, floor = m.get("time_us") or 0, m.get("floor_us") or 0
        eager = next((b["cold_us"] for b in m.get("baselines", []) if b["name"] == "eager"), 0)
        verdict, share, over = judged.get("verdict"), 100 * floor / us if us else 0, eager / us if us else 0
        row = f"{verdict} {us:.1f} us  eager {eager:.1f}  x {over:.2f}  of the roofline {share:.0f} %"
        note = "build " + str(r.get("build_ms")) + " ms " + ("" if verdict == "pass" else str(judged.get("summary"))[:150])
print(f"{sys.argv[1]:22} {row}  {note}", flush=True)
' "$(basename "$1" .py)"
}
export -f one
printf '%s\n' "$@" | xargs -P "$jobs" -I{} bash -c 'one {}'
"$cutegen" server stop >/dev/null 2>&1
