#!/usr/bin/env bash
# modules_judged.sh - `cutegen run` itself on chains, on a GPU one after the other: how long, and what came out.
#
#     bench/gpu/modules_judged.sh TREE OUT SECONDS [TASK...]      TASKS are names of modules_tasks.py
#     DEVICE=simt bench/gpu/modules_judged.sh ...                 without a GPU, at reduced sizes: all at once, two cores each
#
# TREE is what setup/dist.sh packs. Caches are empty, every default holds. A run that is not done after SECONDS is ended
# and counted so. Its text is kept in OUT.
set -u
tree=$(readlink -f "$1") out=$2 seconds=$3 device=${DEVICE:-cuda:0}
shift 3
[ $# -gt 0 ] || set -- p02 c02 p10 c16 p12
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(readlink -f "$out")
python3 "$here/modules_tasks.py" "$work/tasks" "$@"
export CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_SERVER=no
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}

one() # TASK [COMMAND...]: the command is put before cutegen
{
    local begin rc name=$1 text=$out/judged-$1.txt
    shift
    begin=$(date +%s)
    CUTEGEN_CACHE=$work/cache-$name CUTEGEN_RUNTIME=$work/rt-$name "$@" timeout -k 5 "$seconds" \
        "$tree/bin/cutegen" run "$work/tasks/$name.py" --device "$device" --runs "$work/runs-$name" >"$text" 2>&1
    rc=$?
    echo "$name: $(($(date +%s) - begin)) s, rc $rc; $(grep -E '^(best|checked)' "$text" | tr -s ' \n' ' ' | cut -c1-220)"
}

core=0
for name in "$@"; do
    if [ "$device" = simt ]; then
        OMP_NUM_THREADS=2 one "$name" taskset -c "$core,$((core + 1))" &
        core=$((core + 2))
    else
        one "$name"
    fi
done
wait
