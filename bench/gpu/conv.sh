#!/usr/bin/env bash
# conv.sh - the table of convolutions on a GPU: what the engineer writes, built by nvcc, beside PyTorch.
#
#     bench/gpu/conv.sh write LADDER KERNELS                    SHAPE.x3.cu, .x1.cu, .f16.cu; needs no GPU
#     bench/gpu/conv.sh build KERNELS LIBS CUTLASS [JOBS]       by nvcc, for sm_90a; the oldest file first
#     bench/gpu/conv.sh measure LIBS OUT [SECONDS [NAME...]] [--nhwc=PREFIX] [--quick] [--kernels]
set -u
here=$(dirname "$(readlink -f "$0")")
root=$here/../..
case ${1:-} in
write)
    ladder=$(readlink -f "$2") to=$3 work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$to"
    python3 "$here/conv.py" describe "$work" || exit 1
    for said in "$work"/*.json; do
        name=$(basename "$said" .json) forms="x3 x1"
        [[ $name != *@* ]] || forms=${name#*@} # a type
        for form in $forms; do
            rm -f "$work"/k/*
            skip=()
            [ "$form" = x1 ] || skip=("multiply the high parts alone")
            CUTEGEN_HOME=$root "$ladder" "$said" "$work/k" sm_90a "${skip[@]}" >"$work/log" || { cat "$work/log"; exit 1; }
            [ "$form" != x1 ] || grep -q "multiply the high parts alone" "$work/log" || continue
            cp "$(ls "$work"/k/*.cu | sort -t. -k2n | tail -1)" "$to/${name%@*}.$form.cu"
        done
    done
    ;;
build)
    kernels=$2 libs=$3 cutlass=$4 jobs=${5:-$(nproc)}
    mkdir -p "$libs"
    export cutlass libs root
    find "$kernels" -name '*.cu' -printf '%T@ %p\n' | sort -n | cut -d' ' -f2 | xargs -P "$jobs" -I{} bash -c '
        name=$(basename {} .cu)
        nvcc -std=c++17 -gencode arch=compute_90a,code=sm_90a --expt-relaxed-constexpr -diag-suppress 177 -shared -cudart shared -Xcompiler -fPIC -DCUTEGEN_EXPORT=1 \
            -I "$root/include" -isystem "$cutlass" {} -o "$libs/$name.new" -lcuda >"$libs/$name.log" 2>&1 && mv "$libs/$name.new" "$libs/$name.so" ||
            { echo "$name: nvcc does not take it"; head -5 "$libs/$name.log"; }
        touch "$libs/$name.done"'
    ;;
measure)
    shift
    nvidia-smi --query-gpu=name,clocks.sm,clocks.mem,power.draw --format=csv,noheader
    python3 "$here/conv.py" measure "$@"
    nvidia-smi --query-gpu=name,clocks.sm,clocks.mem,power.draw --format=csv,noheader
    ;;
*)
    sed -n '2,7s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
