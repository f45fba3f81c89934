#!/usr/bin/env bash
# cutedsl.sh - CuTe DSL kernels on simt: right and without findings as each card; with their mistakes, found at the lines
# marked `here: NAME KIND` of cutedsl/*.py.
#
#     tests/simt/cutedsl.sh CUTEGEN
#
# $CUTEGEN_DSL_PYTHON (default: python3) must have nvidia-cutlass-dsl and NumPy; exit 77: it has not.
set -uo pipefail
cutegen=$(realpath "$1")
here=$(cd "$(dirname "$0")/cutedsl" && pwd)
python=${CUTEGEN_DSL_PYTHON:-python3}
"$python" -c 'import cutlass.cute, numpy' 2>/dev/null ||
    { echo "cutedsl: SKIP, $python has no nvidia-cutlass-dsl or no NumPy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache} PYTHONWARNINGS=ignore
unset CUTE_DSL_ARCH
failed=0

# clean CARD FILE NAME...: right, and no findings
clean()
{
    local card=$1 file=$2 rc
    shift 2
    "$cutegen" simt exec --simt-as "$card" -- "$python" "$here/$file" "$@" >"$work/out" 2>&1
    rc=$?
    grep -E ' (ok|WRONG)' "$work/out" | sed "s/^/$card: /"
    [ $rc = 0 ] || { echo "cutedsl: FAILED on $card, exit $rc"; tail -20 "$work/out"; failed=1; }
}

# bugs CARD FILE: each mistake at its line
bugs()
{
    "$cutegen" simt exec --simt-as "$1" --format json --output "$work/bug" -- "$python" "$here/$2" --bug >"$work/bug.out" 2>&1
    [ $? = 1 ] || { echo "cutedsl: FAILED, no finding"; failed=1; }
    "$python" - "$here/$2" "$work/bug" <<'P' || { tail -20 "$work/bug.out"; failed=1; }
import json, re, sys
source, report = sys.argv[1], json.load(open(sys.argv[2]))
found = {(f["kind"], f.get("line")) for f in report["findings"]}
missed = 0
for number, line in enumerate(open(source), 1):
    mark = re.search(r"# here: (\w+) (\w+)", line)
    if mark:
        ok = (mark[2], number) in found
        print(f"{'found' if ok else 'cutedsl: FAILED, not found'}: {mark[1]}: {mark[2]} at line {number}")
        missed += not ok
sys.exit(missed > 0)
P
}

clean h200 kernels.py
clean a100 kernels.py add softmax norm transpose mma
clean b200 blackwell.py
clean b200 kernels.py softmax norm mma fetch store
clean rtx5090 kernels.py softmax norm mma fetch store
clean rtx5090 blackwell.py attention
bugs h200 kernels.py
bugs b200 blackwell.py
[ $failed = 0 ] && echo "cutedsl: passed"
exit $failed
