#!/usr/bin/env bash
# modules_ahead.sh - generated modules composed and compiled for sm_90a by many processes; no GPU is used.
#
#     bench/gpu/modules_ahead.sh TREE OUT SECONDS JOBS GENERATOR[:COUNT[:SEED]]...
#
# TREE is what setup/dist.sh packs. OUT/GENERATOR-SEED.ahead.txt has a line for each module: built, or why not.
set -u
tree=$(readlink -f "$1") out=$(readlink -f "$2") seconds=$3 jobs=$4
shift 4
here=$(cd "$(dirname "$0")/../../tests/expert" && pwd)
export work tree
work=$(mktemp -d)
begin=$SECONDS
export CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_SERVER=yes OMP_NUM_THREADS=1
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}

one() {
    local said name=$1
    export CUTEGEN_RUNTIME=$work/rt-$SLOT CUTEGEN_CACHE=$work/cache-$SLOT
    if said=$("$tree/bin/cutegen" build "$work/tasks/$name.py" --depth 0 --device for:H200 2>&1); then
        echo "$name: built, $(head -1 "$work/tasks/$name.py" | tr -d '"' | cut -c1-150)"
    else
        echo "$name: FAILED, $(head -1 "$work/tasks/$name.py" | tr -d '"' | cut -c1-150): $(printf '%s' "$said" | tail -2 | tr '\n' ' ' | cut -c1-250)"
    fi
}
export -f one

for given in "$@"; do
    IFS=: read -r generator count seed <<<"$given"
    seed=${seed:-1} left=$((seconds - (SECONDS - begin)))
    [ "$left" -gt 5 ] || break
    rm -rf "$work/tasks"
    python3 "$here/$generator.py" "$work/tasks" "${count:-0}" "$seed"
    find "$work/tasks" -name '*.py' -printf '%f\n' | sed 's/\.py$//' | sort |
        timeout "$left" xargs --process-slot-var=SLOT -P "$jobs" -I{} bash -c 'one {}' >"$out/$generator-$seed.ahead.txt" 2>&1
    echo "$generator seed $seed for sm_90a: $(grep -c ': built' "$out/$generator-$seed.ahead.txt") built, $(grep -c ': FAILED' "$out/$generator-$seed.ahead.txt") failed of $(find "$work/tasks" -name '*.py' | wc -l), $((SECONDS - begin)) s"
    grep ': FAILED' "$out/$generator-$seed.ahead.txt" | head -40
done
for runtime in "$work"/rt-*; do
    [ ! -d "$runtime" ] || CUTEGEN_RUNTIME=$runtime "$tree/bin/cutegen" server stop >/dev/null 2>&1
done
rm -rf "$work"
