#!/usr/bin/env bash
# attention.sh - the table of attention on a GPU (attention.py), with kernels that were built before.
#
#     bench/gpu/attention.sh KERNELS OUT [ROW...]       KERNELS: NAME.so, as attention_kernels.py says
#
# BLOCKS="qkv product mingpt": whole blocks instead, attention_blocks.py kernels having written their kernels (BLOCK.so,
# BLOCK_split.so). Tables: attention_table.py OUT/attention.json OUT/blocks.json.
set -u
kernels=$(readlink -f "$1") out=$2
shift; shift
mkdir -p "$out"
nvidia-smi --query-gpu=name,clocks.max.sm,power.limit --format=csv,noheader
here=$(dirname "$(readlink -f "$0")")
if [ -n "${BLOCKS:-}" ]; then
    # shellcheck disable=SC2086 # names of blocks
    timeout "${LIMIT:-110}" python3 "$here/attention_blocks.py" time "$kernels" "$out/blocks.json" $BLOCKS
    exit
fi
timeout "${LIMIT:-110}" python3 "$here/attention.py" "$kernels" "$out/attention.json" "$@"
