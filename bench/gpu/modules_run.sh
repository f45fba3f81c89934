#!/usr/bin/env bash
# modules_run.sh - `cutegen run` on five chains at reduced sizes on simt, two cores for each: how long, and what came out. No GPU is used.
#
#     bench/gpu/modules_run.sh TREE OUT SECONDS [TASK...]         TASKS are names of modules_tasks.py; five are run at once
#
# TREE is what setup/dist.sh packs. A run that is not done after SECONDS is ended and counted so. Its report is kept in OUT.
set -u
tree=$(readlink -f "$1") out=$2 seconds=$3
shift 3
[ $# -gt 0 ] || set -- p02 p10 p12 c02 c16
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
mkdir -p "$out"
out=$(readlink -f "$out")
python3 "$here/modules_tasks.py" "$work/tasks" "$@"
export CUTEGEN_HOME=$tree/share/cutegen OMP_NUM_THREADS=2 CUTEGEN_SERVER=no
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}

one() { # TASK FIRST_CORE
    local begin rc name=$1
    begin=$(date +%s)
    CUTEGEN_CACHE=$work/cache-$name CUTEGEN_RUNTIME=$work/rt-$name taskset -c "$2,$(($2 + 1))" timeout -k 5 "$seconds" \
        "$tree/bin/cutegen" run "$work/tasks/$name.py" --device simt --runs "$work/runs-$name" >"$out/run-$name.txt" 2>&1
    rc=$?
    echo "$name: $(($(date +%s) - begin)) s, rc $rc; $(grep -v '^ *$' "$out/run-$name.txt" | tail -1 | cut -c1-150)"
}

core=0
for name in "$@"; do
    one "$name" "$core" &
    core=$((core + 2))
done
wait
rm -rf "$work"
