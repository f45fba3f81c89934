#!/usr/bin/env bash
# modules_sweep.sh - generated modules judged on simt by many processes: for a machine with cores to spare. No GPU is used.
#
#     bench/gpu/modules_sweep.sh TREE LADDER OUT SECONDS JOBS GENERATOR[:COUNT[:SEED[:START]]]...
#
# TREE is what setup/dist.sh packs, LADDER the program tests/expert/expert_ladder. Rows come as they are done, into
# OUT/GENERATOR-SEED.txt; what failed is kept in OUT/failed. Each generator has what is left of SECONDS.
set -u
tree=$(readlink -f "$1") ladder=$(readlink -f "$2") out=$(readlink -f "$3") seconds=$4 jobs=$5
shift 5
here=$(cd "$(dirname "$0")/../../tests/expert" && pwd)
work=$(mktemp -d)
begin=$SECONDS
export CUTEGEN=$tree/bin/cutegen LADDER=$work/ladder CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_CACHE=$work/cache
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} JOBS=$jobs KEEP=$out/failed OMP_NUM_THREADS=1
mkdir -p "$KEEP" "$work/cache"
printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$tree/lib" "$ladder" >"$LADDER"
chmod +x "$LADDER"
for one in "$@"; do
    IFS=: read -r generator count seed START <<<"$one"
    export START=${START:-0}
    seed=${seed:-1} left=$((seconds - (SECONDS - begin)))
    [ "$left" -gt 5 ] || break
    [ -n "${count:-}" ] && [ "$count" != 0 ] || count=$(python3 "$here/$generator.py" --count)
    to=$out/$generator-$seed.txt
    GENERATE=$here/$generator.py timeout "$left" "$here/coverage.sh" "$work" "$count" "$seed" 1 >"$to" 2>&1
    echo "$generator seed $seed: $(grep -c ': pass, ' "$to") passed, $(grep -c ': FAILED, ' "$to") failed of $count, $((SECONDS - begin)) s"
    grep -A4 ': FAILED, ' "$to" | cut -c1-220 | head -60
done
rm -rf "$work"
