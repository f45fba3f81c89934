#!/bin/bash
# The PTX that the tests read; needs nvcc, run by hand after a change of the kernels.
cd "$(dirname "$0")" || exit 1
for name in "$@"; do
    nvcc -std=c++17 -lineinfo -arch=compute_90a -ptx -o - "$name.cu" |
        sed -E 's#^(\s*\.file\s+[0-9]+ )"[^"]*/#\1"#' > "../ptx/hopper_$name.ptx"
done
