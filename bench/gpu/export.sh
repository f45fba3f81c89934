#!/usr/bin/env bash
# export.sh - runs two tasks on the GPU, exports each winner and checks the module (export.py).
#
#     bench/gpu/export.sh dist/cutegen-VERSION-x86_64.tar.gz
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
tar xzf "$1" -C "$work"
root=$(echo "$work"/*/)
export CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs CUTLASS_PATH=$root/share/cutegen/cutlass
for task in swish softmax; do
    printf '\n== %s\n' "$task"
    "$root/bin/cutegen" run "$root/share/cutegen/examples/$task.py" --device cuda:0 | tail -8
    "$root/bin/cutegen" export last --output "$work/$task" >/dev/null || "$root/bin/cutegen" export last
    python3 "$here/export.py" "$(find "$work" -name "${task}_new.py" | head -1)"
done
rm -rf "$work"
