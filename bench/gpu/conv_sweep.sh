#!/usr/bin/env bash
# conv_sweep.sh - SWEEP=conv by many processes, for a machine with cores to spare. No GPU is used.
#
#     bench/gpu/conv_sweep.sh TREE LADDER OUT SECONDS [GENERATOR]
#
# TREE is what setup/dist.sh packs, LADDER the program tests/expert/expert_ladder, GENERATOR tests/expert/convolutions.py.
# Twelve processes; lines of each part come into OUT/PART.txt, what failed into OUT/failed.
set -u
tree=$(readlink -f "$1") ladder=$(readlink -f "$2") out=$(readlink -f "$3") seconds=$4
here=$(cd "$(dirname "$0")/../../tests/expert" && pwd)
work=$(mktemp -d)
export GENERATE=${5:-$here/convolutions.py} CUTEGEN=$tree/bin/cutegen LADDER=$work/ladder CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_CACHE=$work/cache
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} KEEP=$out/failed OMP_NUM_THREADS=1
mkdir -p "$KEEP" "$work/cache"
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$tree/lib" "$ladder" >"$LADDER"
chmod +x "$LADDER"

# part NAME COUNT SEED JOBS VARIABLE=VALUE...
part() { timeout "$seconds" env JOBS="$4" "${@:5}" nice "$here/coverage.sh" "$work" "$2" "$3" 1 >"$out/$1.txt" 2>&1; }
hopper="ARCH=sm_90a SIMT_ARCH=90a"
part plain_80 100 1 3 BASELINE=strict &
part plain_90a 50 2 2 BASELINE=strict $hopper &
part plain_90a_tf32 50 3 2 $hopper &
part chains_80 30 4 1 BASELINE=strict CHAINS=1 &
part chains_90a 30 5 2 BASELINE=strict CHAINS=1 $hopper &
part chains_90a_tf32 12 5 1 CHAINS=1 $hopper &
part last_90a 30 6 1 LAST=1 $hopper &
part last_many_90a 10 7 1 LAST=many $hopper &
wait
for f in "$out"/*_*.txt; do
    echo "$(basename "$f" .txt): $(grep -c ': pass, ' "$f") passed, $(grep -c ': FAILED, ' "$f") failed"
    grep -A4 ': FAILED, ' "$f" | cut -c1-220 | head -30
done
rm -rf "$work"
