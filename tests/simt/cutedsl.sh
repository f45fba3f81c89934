#!/usr/bin/env bash
# cutedsl.sh - CuTe DSL kernels on simt: right and without findings; with their mistakes, found at the lines marked
# `here: NAME KIND` of cutedsl/kernels.py. Those for Ampere are run as an A100 too.
#
#     tests/simt/cutedsl.sh CUTEGEN [NAME...]
#
# $CUTEGEN_DSL_PYTHON (default: python3) must have nvidia-cutlass-dsl and NumPy; exit 77: it has not.
set -uo pipefail
cutegen=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")/cutedsl" && pwd)
python=${CUTEGEN_DSL_PYTHON:-python3}
"$python" -c 'import cutlass.cute, numpy' 2>/dev/null ||
    { echo "cutedsl: SKIP, $python has no nvidia-cutlass-dsl or no NumPy"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache} PYTHONWARNINGS=ignore
unset CUTE_DSL_ARCH
failed=0

# clean CARD NAME...: right, and no findings
clean()
{
    local card=$1 rc
    shift
    "$cutegen" simt exec --simt-as "$card" --format json --output "$work/clean" -- "$python" "$here/kernels.py" "$@" >"$work/out" 2>&1
    rc=$?
    grep -E ' (ok|WRONG)' "$work/out" | sed "s/^/$card: /"
    [ $rc = 0 ] || { echo "cutedsl: FAILED on $card, exit $rc"; tail -20 "$work/out"; failed=1; }
}

clean h200 "$@"
[ $# -gt 0 ] || clean a100 add softmax norm transpose mma
"$cutegen" simt exec --format json --output "$work/bug" -- "$python" "$here/kernels.py" --bug "$@" >"$work/bug.out" 2>&1
[ $? = 1 ] || { echo "cutedsl: FAILED, no finding"; tail -20 "$work/bug.out"; failed=1; }
"$python" - "$here/kernels.py" "$work/bug" "$@" <<'P' || { tail -20 "$work/bug.out"; failed=1; }
import json, re, sys
source, report, names = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3:]
found = {(f["kind"], f.get("line")) for f in report["findings"]}
missed = 0
for number, line in enumerate(open(source), 1):
    mark = re.search(r"# here: (\w+) (\w+)", line)
    if not mark or (names and mark[1] not in names):
        continue
    ok = (mark[2], number) in found
    print(f"{mark[1]}: {mark[2]} at line {number}" if ok else f"cutedsl: FAILED, {mark[1]}: no {mark[2]} at line {number}")
    missed += not ok
sys.exit(missed > 0)
P
[ $failed = 0 ] && echo "cutedsl: passed"
exit $failed
