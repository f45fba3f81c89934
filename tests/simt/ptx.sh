#!/usr/bin/env bash
# ptx.sh - makes the PTX of kernels/ again: tests/simt/ptx.sh [CUTLASS/include]
# nvcc 13 and CUTLASS's headers are needed; the tests themselves need neither.
# bugs*.cu and parts.cu are built with line numbers, which their tests look at.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cutlass=${1:-${CUTLASS_INCLUDE:-}}
make_ptx() { # SOURCE ARCH FLAGS...
    local src=$1 arch=$2 name
    shift 2
    name=$(basename "$src" .cu)
    nvcc -std=c++17 -arch="$arch" -ptx -I "$cutlass" --expt-relaxed-constexpr -diag-suppress 177 "$@" \
        -o "$here/ptx/$name.ptx" "$src"
    # Only the names of files matter, not where they lay.
    sed -i -E 's#^(\t?\.file[ \t]+[0-9]+ ")/.*/(include/|kernels/)?([^/"]+/)?([^/"]+")#\1\3\4#' "$here/ptx/$name.ptx"
}
for f in pointwise reduce tile gemm intrinsics; do
    make_ptx "$here/kernels/diff/$f.cu" compute_89
done
make_ptx "$here/kernels/bugs_cute.cu" compute_89 -lineinfo
make_ptx "$here/bugs/bugs.cu" compute_80 -lineinfo
for f in attacks attacks_async; do
    make_ptx "$here/bugs/$f.cu" compute_90a -lineinfo
done
mv "$here"/ptx/bugs.ptx "$here"/ptx/attacks*.ptx "$here/bugs/"
for f in bugs parts calls; do # after the other bugs.cu
    make_ptx "$here/kernels/$f.cu" compute_80 -lineinfo
done
