#!/usr/bin/env bash
# judge_all.sh - every example at full shapes on a GPU, with a right kernel and a wrong one; the table goes to OUT.
#
#     bench/gpu/judge_all.sh PATH-TO-CUTEGEN OUT.md [--kernels FOLDER] [NAME...]
#
# Several at a time: the times in the table are disturbed by each other and only the verdicts count.
set -u
here=$(cd "$(dirname "$0")/../.." && pwd)
cutegen=$1 out=$2
shift 2
exec python3 "$here/tests/examples/judge_all.py" "$cutegen" --device cuda:0 --jobs "${JOBS:-6}" --table "$out" "$@"
