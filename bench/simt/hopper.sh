#!/bin/bash
# Runs the Hopper cases on a GPU; its output is tests/simt/hopper/h200.def.
#   bench/simt/hopper.sh OUT_DIR [folder with kernels.cubin and hopper_gpu, else built here]
out=${1:-.} from=$2
mkdir -p "$out"
if [ -z "$from" ]; then
    from=$(mktemp -d)
    nvcc -std=c++17 -arch=sm_90a -cubin -o "$from/kernels.cubin" tests/simt/hopper/kernels.cu
    nvcc -std=c++17 -o "$from/hopper_gpu" bench/simt/hopper_gpu.cu -lcuda
fi
{
    echo "/* h200.def - what an H200 gave for the cases of cases.def (bench/simt/hopper.sh). */"
    at=0
    while :; do
        said=$(timeout 20 "$from/hopper_gpu" "$from/kernels.cubin" "$out" $at)
        rc=$?
        echo "$said"
        # A case that breaks the context ends the process: go on with the next.
        next=$(echo "$said" | sed -n 's/.*stopped after case \([0-9]*\).*/\1/p')
        [ $rc -eq 124 ] && next=$((at + $(echo "$said" | grep -c '^HASH\|^/\*')))
        [ -n "$next" ] || break
        at=$((next + 1))
    done
} > "$out/h200.def"
