#!/usr/bin/env bash
# memory.sh - the table of the built-in engineer's memory-bound kernels, on a machine with a GPU.
#
#     bench/gpu/memory.sh dist/cutegen-VERSION-x86_64.tar.gz OUT [--ladder PROGRAM | --kernels DIR] [--no-compile | --no-judge] [TASK...]
#
# Unpacks the tarball into a new folder and uses nothing else of this checkout but memory.py (and PROGRAM, expert_ladder).
set -u
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
tar xzf "$1" -C "$work"
root=$(echo "$work"/*/)
out=$(mkdir -p "$2" && cd "$2" && pwd)
shift 2
export CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs
python3 "$here/memory.py" "$root/bin/cutegen" "$root/share/cutegen/examples" "$out" "$@"
rm -rf "$work"
