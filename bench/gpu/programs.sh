#!/usr/bin/env bash
# programs.sh - the CUDA programs and Triton kernels of tests/simt on a real GPU: they check their own results.
#
#     bench/gpu/programs.sh OUT.md
#
# Builds with the machine's nvcc. The same programs run on simt in `make test` (tests/simt/programs.sh, triton.sh).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

one()
{
    local name=$1 arch=sm_90
    case $name in cluster_tma) arch=sm_90a ;; esac
    if ! nvcc -arch=$arch -o "$work/$name" "$root/tests/simt/programs/$name.cu" >"$work/$name.txt" 2>&1; then
        echo "| $name | does not build |"
    elif timeout 60 "$work/$name" >"$work/$name.txt" 2>&1 && [ "$(tail -1 "$work/$name.txt")" = ok ]; then
        echo "| $name | right |"
    else
        echo "| $name | WRONG: $(tail -1 "$work/$name.txt") |"
    fi >"$work/$name.row"
}
for source in "$root"/tests/simt/programs/*.cu; do
    [ "$source" = "$root/tests/simt/programs/textures.cu" ] && continue # asks for a refusal, which is simt's alone
    one "$(basename "$source" .cu)" &
done
wait
{
    echo "| program | result on $(nvidia-smi --query-gpu=name --format=csv,noheader) |"
    echo "|---|---|"
    cat "$work"/*.row
    sed 's/^DEVICE = .*/DEVICE = "cuda"/' "$root/tests/simt/triton/kernels.py" >"$work/kernels.py"
    timeout 120 python3 "$work/kernels.py" 2>&1 | sed 's/^\(.*\) ok$/| Triton: \1 | right |/'
} | tee "$out"
