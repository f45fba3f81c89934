#!/usr/bin/env bash
# smoke.sh - the x86_64 tarball on a machine with a GPU: doctor, one verdict, the built-in loops.
#
#     bench/gpu/smoke.sh dist/cutegen-VERSION-x86_64.tar.gz [OUT]
#
# Unpacks into a new folder and uses nothing else of this checkout. What it prints is what happened.
set -u
tarball=$(readlink -f "$1")
out=$(readlink -f "${2:-.}")
work=$(mktemp -d)
cd "$work" || exit 3
tar xzf "$tarball"
root=$(echo "$work"/*/)
cutegen=$root/bin/cutegen
examples=$root/share/cutegen/examples
export CUTEGEN_CACHE=$work/cache

say() { printf '\n== %s\n' "$*"; }

say doctor
"$cutegen" doctor
say "eval swish, cold"
time "$cutegen" eval "$examples/swish.py" "$examples/kernels/swish.cu" --device cuda:0
say "eval swish again"
time "$cutegen" eval "$examples/swish.py" "$examples/kernels/swish.cu" --device cuda:0
for task in swish square_matmul softmax; do
    say "run $task on the GPU"
    time "$cutegen" run "$examples/$task.py" --device cuda:0
    "$cutegen" report last -o "$out/$task.html" >/dev/null
done
say "run swish on simt"
time "$cutegen" run "$examples/swish.py" --device simt
say "run square_matmul on simt"
time "$cutegen" run "$examples/square_matmul.py" --device simt
rm -rf "$work"
