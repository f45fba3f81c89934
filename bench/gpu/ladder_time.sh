#!/usr/bin/env bash
# ladder_time.sh - how long the built-in engineer's whole ladder takes to compile: one kernel after the other, and all ahead.
#
#     bench/gpu/ladder_time.sh CUTEGEN OUT.md [CORES [TASK.py]]      CORES: all; TASK: square_matmul, the product of 4096
#
# No GPU is used: the kernels are those for an H200, from an empty cache and a cold builder. "One" is a single core, where one
# compiler runs at a time, as in a run with --ahead 0; "ahead" has as many compilers as cores. The load is the machine's before each. DEPTH: only the first kernel and this many more.
set -u
cutegen=$(readlink -f "$1") out=$2 cores=${3:-$(nproc)}
task=${4:-$(dirname "$(readlink -f "$0")")/../../examples/square_matmul.py}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_SERVER=no CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} OMP_NUM_THREADS=1

# ladder HOW CORES...: a row
ladder()
{
    local said load begin=$SECONDS
    load=$(cut -d' ' -f1 /proc/loadavg)
    said=$(CUTEGEN_CACHE=$work/cache-$1 CUTEGEN_RUNTIME=$work/rt-$1 taskset -c "$2" "$cutegen" build "$task" --device for:H200 ${DEPTH:+--depth "$DEPTH"} --json)
    echo "| $(basename "$task" .py) | $1 | $2 | $(sed -n 's/.*"kernels": *\([0-9]*\).*/\1/p' <<<"$said") | $(sed -n 's/.*"failed": *\([0-9]*\).*/\1/p' <<<"$said") | $((SECONDS - begin)) | $load |"
}
{
    echo "| task | compilers | cores | kernels | failed | s | load before |"
    echo "|---|---|---|---|---|---|---|"
    ladder ahead "0-$((cores - 1))"
    ladder one 0
} | tee "$out"
