#!/usr/bin/env bash
# chains_again.sh - chains without a product, and two reductions of columns, beside eager, a CUDA graph of it and torch.compile:
# kernels built beforehand, a row as soon as it is measured, those below torch.compile the last time first, with other kernels
# for them (NAME~WORD).
#
#     bench/gpu/chains_again.sh prepare CUTEGEN FOLDER       anywhere: FOLDER has all that the other needs
#     FOLDER/chains_again.sh OUT [SECONDS]                   on the GPU: OUT/chains.jsonl, OUT/chains.txt, OUT/chains.md
set -u
here=$(cd "$(dirname "$0")" && pwd)
first="c10 c11 c12 c15 c16"
rest="c01 c02 c03 c04 c05 c06 c07 c08 c09 c13 c14 g_softmax_outer g_logsumexp_middle"
read -r -a names <<<"$first $rest"

if [ "${1:-}" = prepare ]; then
    cutegen=$2 folder=$3
    mkdir -p "$folder/kernels"
    python3 "$here/modules_tasks.py" "$folder/tasks" "${names[@]}"
    cp "$here/modules.py" "$here/chains_again.sh" "$here/../../oracle/exported/launcher.py" "$folder"
    for name in "${names[@]}"; do # kernels that are there, NAME~WORD too, stay
        [ -s "$folder/kernels/$name.cubin" ] ||
            "$cutegen" build "$folder/tasks/$name.py" --depth 0 --device for:H200 --out "$folder/kernels"
    done
    rm -f "$folder"/kernels/*.cu
    tar czf "$folder/kernels.tgz" -C "$folder" kernels && rm -r "$folder/kernels"
    exit 0
fi
out=$1
mkdir -p "$out"
work=$(mktemp -d)
tar xzf "$here/kernels.tgz" -C "$work"
env LAUNCHER=launcher.py SECONDS="${2:-140}" BEFOREHAND=0.4 COUNT=1 python3 "$here/modules.py" "$here/tasks" \
    "$work/kernels" "$out/chains.jsonl" "${names[@]}" 2>&1 | tee "$out/chains.txt"
python3 "$here/modules.py" table "$out/chains.jsonl" >"$out/chains.md"
rm -rf "$work"
