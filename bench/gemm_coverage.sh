#!/usr/bin/env bash
# gemm_coverage.sh - random matrix products, each from the task to a judged kernel.
#
#     bench/gemm_coverage.sh CUTEGEN DEVICE COUNT [SEED] [DEPTH]
#
# Prints a line per task and how many passed; fails unless all did. DEPTH steps of the ladder are climbed.
set -u
cutegen=$(readlink -f "$1") device=$2 count=$3 seed=${4:-1} depth=${5:-0}
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" "$here/gemm_tasks.py" "$work/tasks" "$count" "$seed" || exit 3
passed=0
for task in "$work"/tasks/*.py; do
    title=$(sed -n '1s/"""A random product: \(.*\)\."""/\1/p' "$task")
    if "$cutegen" run "$task" --device "$device" --depth "$depth" --runs "$work/runs" --quiet --no-report \
        >"$work/log" 2>&1; then
        passed=$((passed + 1))
        echo "pass  $(basename "$task" .py)  $title"
    else
        echo "FAIL  $(basename "$task" .py)  $title"
        tail -5 "$work/log"
    fi
done
echo "$passed of $count passed"
[ "$passed" -eq "$count" ]
