#!/usr/bin/env bash
# build.sh - compiles launches.cpp and kernel.cu for the PyTorch of a Python; its headers, nvcc and g++ are enough, no GPU.
#
#     bench/gpu/launches/build.sh PYTHON OUT.so [ARCH]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
torch=$("$1" -c 'import os, torch; print(os.path.dirname(torch.__file__))')
cuda=${CUDA_HOME:-/usr/local/cuda}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -O2 -fPIC -std=c++20 -c "$here/launches.cpp" -o "$work/launches.o" -I"$torch/include" -I"$torch/include/torch/csrc/api/include" -I"$cuda/include"
"$cuda/bin/nvcc" -O2 "-arch=${3:-sm_90}" -Xcompiler -fPIC -c "$here/kernel.cu" -o "$work/kernel.o"
g++ -shared -o "$2" "$work/launches.o" "$work/kernel.o" -L"$torch/lib" -lc10 -lc10_cuda -ltorch_cpu -L"$cuda/lib64" -lcudart
