#!/usr/bin/env bash
# triton.sh - Triton kernels on simt: right and without findings; with their mistakes, found at
# the lines marked `here: NAME KIND` of triton/kernels.py.
#
#     tests/simt/triton.sh CUTEGEN [NAME...]
#
# Exit 77: $CUTEGEN_PYTHON (default: python3) has no torch with Triton, or no headers for Triton's launcher.
set -uo pipefail
cutegen=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")/triton" && pwd)
python=${CUTEGEN_PYTHON:-python3}
"$python" -c 'import torch, triton; assert tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 5)' 2>/dev/null ||
    { echo "triton: SKIP, $python needs Triton 3.5 or newer, with its torch"; exit 77; }
"$python" -c 'import os, sysconfig; assert os.path.exists(sysconfig.get_path("include") + "/Python.h")' 2>/dev/null ||
    { echo "triton: SKIP, $python needs Triton 3.5 or newer and Python.h for its launcher"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache}
failed=0

"$cutegen" simt exec --format json --output "$work/clean" -- "$python" "$here/kernels.py" "$@" >"$work/out" 2>&1 ||
    { echo "triton: FAILED, exit $?"; tail -20 "$work/out"; failed=1; }
"$cutegen" simt exec --format json --output "$work/bug" -- "$python" "$here/kernels.py" --bug "$@" >"$work/bug.out" 2>&1
[ $? = 1 ] || { echo "triton: FAILED, no finding"; tail -20 "$work/bug.out"; failed=1; }
"$python" - "$here/kernels.py" "$work/bug" "$@" <<'P' || { tail -20 "$work/bug.out"; failed=1; }
import json, re, sys
source, report, names = sys.argv[1], json.load(open(sys.argv[2])), sys.argv[3:]
found = {(f["kind"], f.get("line")) for f in report["findings"]}
missed = 0
for number, line in enumerate(open(source), 1):
    mark = re.search(r"# here: (\w+) (\w+)", line)
    if mark and (not names or mark[1] in names) and (mark[2], number) not in found:
        print(f"triton: FAILED, {mark[1]}: no {mark[2]} at line {number}; found {sorted(found, key=str)}")
        missed += 1
sys.exit(missed > 0)
P
[ $failed = 0 ] && echo "triton: passed"
exit $failed
