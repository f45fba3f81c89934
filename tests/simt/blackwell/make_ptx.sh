#!/bin/bash
# The PTX that the tests read; needs nvcc, run by hand after a change of the kernels.
cd "$(dirname "$0")" || exit 1
make_ptx() { # NAME FLAGS...
    local name=$1
    shift
    nvcc -std=c++17 "$@" -arch=compute_100a -ptx -o - "$name.cu" |
        sed -E 's#^(\s*\.file\s+[0-9]+ )"[^"]*/#\1"#' > "../ptx/blackwell_$name.ptx"
}
make_ptx kernels
make_ptx bugs -lineinfo # the tests look at lines
