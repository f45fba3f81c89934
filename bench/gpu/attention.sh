#!/usr/bin/env bash
# attention.sh - the table of attention on a GPU (attention.py), with kernels that were built before.
#
#     bench/gpu/attention.sh KERNELS OUT [ROW...]       KERNELS: NAME.so, as attention_kernels.py says
set -u
kernels=$(readlink -f "$1") out=$2
shift; shift
mkdir -p "$out"
nvidia-smi --query-gpu=name,clocks.max.sm,power.limit --format=csv,noheader
timeout "${LIMIT:-110}" python3 "$(dirname "$(readlink -f "$0")")/attention.py" "$kernels" "$out/attention.json" "$@"
