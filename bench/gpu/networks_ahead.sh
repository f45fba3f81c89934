#!/usr/bin/env bash
# networks_ahead.sh - the first kernels of whole networks, compiled for an H200 by many processes; no GPU is used.
#
#     bench/gpu/networks_ahead.sh TREE KERNELS JOBS TASK.py...
#
# TREE is what setup/dist.sh packs. KERNELS gets NAME.cu, .cubin and .json (networks_whole.py), and NAME.done with the time that
# it took; those that have one are left as they are. In order: the longest compiles first.
set -u
tree=$(readlink -f "$1") jobs=$3
mkdir -p "$2"
kernels=$(readlink -f "$2")
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export tree kernels work CUTEGEN_HOME=$tree/share/cutegen CUTEGEN_SERVER=no OMP_NUM_THREADS=1
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)} CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache}

one() # TASK
{
    local name said begin=$SECONDS
    name=$(basename "$1" .py)
    [ ! -f "$kernels/$name.done" ] || return 0
    export CUTEGEN_RUNTIME=$work/rt-$SLOT
    said=$("$tree/bin/cutegen" build "$1" --depth 0 --device for:H200 --build-deadline 900 --out "$work/$name" 2>&1 | tail -1)
    if [ -f "$work/$name/$name.cubin" ]; then
        cp "$work/$name/$name".* "$kernels/"
        echo "$said" >"$kernels/$name.done"
    fi
    echo "$name: $said, $((SECONDS - begin)) s"
}
export -f one
mkdir -p "$CUTEGEN_CACHE"
printf '%s\n' "$@" | xargs --process-slot-var=SLOT -P "$jobs" -I{} bash -c 'one {}'
