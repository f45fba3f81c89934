#!/usr/bin/env bash
# gemm_coverage.sh - random matrix products, each from the task to a judged kernel.
#
#     bench/gemm_coverage.sh CUTEGEN DEVICE COUNT [SEED [DEPTH [FLAG ...]]]
#
# Prints a line per task and how many passed; fails unless all did. DEPTH steps of the ladder are climbed, each of
# which must pass. FLAGs go to `cutegen run` (--simt-arch 90a). JOBS tasks at a time (1).
set -u
cutegen=$(readlink -f "$1") device=$2 count=$3 seed=${4:-1} depth=${5:-0}
shift $(($# < 5 ? $# : 5))
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$cutegen" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
"${PYTHON:-python3}" "$here/gemm_tasks.py" "$work/tasks" "$count" "$seed" || exit 3

# one TASK FLAG...: its line, and the end of what was said where it failed
one()
{
    local task=$1 name log title runs
    shift
    name=$(basename "$task" .py) log=$work/$name.log runs=$work/runs-$name
    title=$(sed -n '1s/"""A random product: \(.*\)\."""/\1/p' "$task")
    "$cutegen" run "$task" --device "$device" --depth "$depth" --runs "$runs" --no-report "$@" >"$log" 2>&1
    local rc=$?
    local steps passed
    steps=$(grep -cE '^ +[0-9]+  ' "$log") passed=$(grep -cE '^ +[0-9]+  .* pass ' "$log")
    if [ $rc -eq 0 ] && [ "$steps" -gt 0 ] && [ "$steps" -eq "$passed" ]; then
        echo "pass  $name  $title: $passed of $steps kernels"
    else
        echo "FAIL  $name  $title: $passed of $steps kernels, exit $rc"
        grep -vE '^(task|class|engineer|run|next|\*) ' "$log" | tail -8 | sed 's/^/      /'
    fi
    rm -rf "$runs"
}
export -f one
export cutegen device depth work
find "$work/tasks" -name '*.py' | sort |
    xargs -P "${JOBS:-1}" -I{} bash -c 'one "$@"' _ {} "$@" | tee "$work/lines"
passed=$(grep -c '^pass' "$work/lines")
echo "$passed of $count passed"
[ "$passed" -eq "$count" ]
