#!/usr/bin/env bash
# gpu.sh - what a GPU says of simt's instructions and kernels; run it on a machine
# with an NVIDIA driver and a C compiler, then look at the results anywhere:
#
#   bench/simt/gpu.sh OUT                        # OUT/hardware.txt, OUT/results.bin
#   cp OUT/hardware.txt tests/simt/              # the test of vectors reads it
#   build/release/tests/simt/test_simt_vectors   # simt beside it
#   build/release/tests/simt/test_simt_kernels OUT/results.bin    # the table
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
out=${1:?usage: bench/simt/gpu.sh OUT}
mkdir -p "$out"
cd "$root"
${CC:-cc} -std=gnu17 -O2 -I tests/simt -o "$out/vectors" bench/simt/vectors.c -ldl
${CC:-cc} -std=gnu17 -O2 -I tests/simt -o "$out/differential" bench/simt/differential.c -ldl -lm
"$out/vectors" tests/simt/vectors.txt > "$out/hardware.txt"
"$out/differential" tests/simt/ptx > "$out/results.bin"
