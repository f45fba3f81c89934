#!/usr/bin/env bash
# modules_judged.sh - `cutegen run` itself on tasks, on a GPU one after the other: how long, and what came out.
#
#     bench/gpu/modules_judged.sh TREE OUT SECONDS [TASK...]
#     DEVICE=simt bench/gpu/modules_judged.sh ...                 without a GPU, at reduced sizes: AT_ONCE of them, two cores each
#
# TREE is what setup/dist.sh packs. A TASK is a file, or a name of modules_tasks.py, of networks/, or of a shape of conv.py.
# Caches are empty (or CUTEGEN_CACHE), every default holds. A run that is not done after SECONDS is ended and counted so. Its
# text is kept in OUT, and OUT/judged.md has a row for each.
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
python3 "$here/conv.py" tasks "$work/tasks" "$@"
names=()
for task in "$@"; do
    name=$(basename "$task" .py)
    for file in "$task" "$here/networks/$name.py"; do
        [ ! -f "$file" ] || cp "$file" "$work/tasks/$name.py"
    done
    [ -f "$work/tasks/$name.py" ] && names+=("$name") || echo "$task: no such task"
done
export CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_SERVER=no
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}

one() # TASK [COMMAND...]: the command is put before cutegen
{
    local begin rc took name=$1 text=$out/judged-$1.txt
    shift
    begin=$(date +%s)
    CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache-$name} CUTEGEN_RUNTIME=$work/rt-$name "$@" timeout -k 5 "$seconds" \
        "$tree/bin/cutegen" run "$work/tasks/$name.py" --device "$device" --runs "$work/runs-$name" >"$text" 2>&1
    rc=$?
    took=$(($(date +%s) - begin))
    echo "$name: $took s, rc $rc; $(grep -E '^(best|checked)' "$text" | tr -s ' \n' ' ' | cut -c1-220)"
    echo "| $name | $took | $(sed -n 's/^best  *//p' "$text") | $(grep -cE '^ +[0-9]+  ' "$text") | $(sed -n 's/^checked  *//p' "$text") |" >>"$out/judged.md"
}

printf '%s\n' '| task | s | best | attempts | checked |' '|---|---|---|---|---|' >"$out/judged.md"
core=0 most=$(($(nproc) / 2))
for name in "${names[@]}"; do
    if [ "$device" = simt ]; then
        while [ "$(jobs -r | wc -l)" -ge "${AT_ONCE:-$((most > 0 ? most : 1))}" ]; do wait -n; done
        OMP_NUM_THREADS=2 one "$name" taskset -c "$core,$((core + 1))" &
        core=$(((core + 2) % (2 * most)))
    else
        one "$name"
    fi
done
wait
