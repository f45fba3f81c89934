#!/usr/bin/env bash
# modules_judged.sh - `cutegen run` itself on chains on a GPU, one after the other: how long, and what came out.
#
#     bench/gpu/modules_judged.sh TREE OUT SECONDS [TASK...]      TASKS are names of modules_tasks.py
#
# TREE is what setup/dist.sh packs. Caches are empty, every default holds. A run that is not done after SECONDS is ended
# and counted so. Its text is kept in OUT.
set -u
tree=$(readlink -f "$1") out=$2 seconds=$3
shift 3
[ $# -gt 0 ] || set -- p02 c02 p10 c16 p12
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(readlink -f "$out")
python3 "$here/modules_tasks.py" "$work/tasks" "$@"
export CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_SERVER=no CUTEGEN_CACHE=$work/cache CUTEGEN_RUNTIME=$work/rt
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}
for name in "$@"; do
    begin=$(date +%s)
    timeout -k 5 "$seconds" "$tree/bin/cutegen" run "$work/tasks/$name.py" --device cuda:0 --runs "$work/runs" >"$out/judged-$name.txt" 2>&1
    rc=$?
    echo "$name: $(($(date +%s) - begin)) s, rc $rc; $(grep -E '^(best|checked)' "$out/judged-$name.txt" | tr -s ' \n' ' ' | cut -c1-220)"
done
