#!/usr/bin/env bash
# export.sh - judges kernels on the GPU, exports them, builds the modules with load_inline and checks them (export.py).
#
#     bench/gpu/export.sh CUTEGEN-TREE OUT.md KERNELS
#
# CUTEGEN-TREE is the unpacked tarball; KERNELS holds one NAME.cu for each example NAME. One foreign verdict
# of the first module is asked for at the end: it must be the kernel's own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$1 out=$2 kernels=$3
work=$(mktemp -d)
export CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs TORCH_EXTENSIONS_DIR=$work/torch
export CUTLASS_PATH=${CUTLASS_PATH:-$root/share/cutegen/cutlass}
folders=()
for kernel in "$kernels"/*.cu; do
    name=$(basename "$kernel" .cu)
    "$root/bin/cutegen" eval "$root/share/cutegen/examples/$name.py" "$kernel" --device cuda:0 | head -4
    "$root/bin/cutegen" export last --no-shared --output "$work/$name" >/dev/null && folders+=("$work/$name")
done
for folder in "${folders[@]}"; do
    MAX_JOBS=2 python3 "$here/export.py" build "$folder" 2>&1 | tail -3 &
done
wait
python3 "$here/export.py" check "${folders[@]}" | tee "$out"
name=$(basename "${folders[0]}")
"$root/bin/cutegen" eval "$root/share/cutegen/examples/$name.py" "$work/$name/${name}_new.py" --device cuda:0
rm -rf "$work"
