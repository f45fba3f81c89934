#!/usr/bin/env bash
# exports.sh - makes a dozen exports on a GPU and checks them (exports.py).
#
#     bench/gpu/exports.sh CUTEGEN-TREE LADDER OUT.md [NAME...]
#
# CUTEGEN-TREE is the unpacked tarball, LADDER the program expert_ladder. For each example NAME the end of the built-in
# engineer's ladder is judged alone on the GPU (`cutegen eval`), exported (`cutegen export`) and verified.
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(readlink -f "$1") ladder=$(readlink -f "$2") out=$3
shift 3
names=${*:-swish gelu row_sum softmax layer_norm rms_norm cross_entropy hinge_loss square_matmul bfloat16_matmul linear_gelu half_linear_gelu}
work=$(mktemp -d)
export CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt CUTEGEN_SERVER=yes CUTEGEN_DEVICE=cuda:0
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}
cutegen=$root/bin/cutegen examples=$root/share/cutegen/examples
begin=$(date +%s)
say() { echo "[$(($(date +%s) - begin)) s] $*"; }

# One rung: as far up as passes. The first round builds, with others beside it; the second one counts.
kernels()
{
    "$cutegen" describe "$examples/$1.py" --json >"$work/$1.json" 2>"$work/$1.err" &&
        CUTEGEN_HOME=$root/share/cutegen LD_LIBRARY_PATH=$root/lib "$ladder" "$work/$1.json" "$work/$1" sm_90a 'try ' >/dev/null 2>"$work/$1.err"
}
for name in $names; do
    mkdir -p "$work/$name"
    kernels "$name" &
done
wait
say "ladders"
first()
{
    local rungs
    mapfile -t rungs < <(cd "$work/$1" && printf '%s\n' *.cu | sort -V -r | head -3)
    for kernel in "${rungs[@]/#/$work/$1/}"; do
        "$cutegen" eval "$examples/$1.py" "$kernel" --draws 2 2>&1 | grep -q '^pass' && { cp "$kernel" "$work/$1.cu"; return; }
    done
    echo "$1: no rung passes; $(tail -1 "$work/$1.err")"
}
pids=()
for name in $names; do
    first "$name" &
    pids+=($!)
done
wait "${pids[@]}"
say "built and tried, all together"
folders=()
for name in $names; do
    [ -f "$work/$name.cu" ] || continue
    "$cutegen" eval "$examples/$name.py" "$work/$name.cu" 2>&1 | sed -n '1,2p' | tr '\n' ' '
    "$cutegen" export last --output "$work/exports/$name" | sed -n 2p && folders+=("$work/exports/$name")
    code=$("$cutegen" show last --attempt 1 --json | sed -n 's/.*"code":"\([0-9a-f]*\)".*/\1/p')
    [ "$(sha256sum <"$work/exports/$name/kernel-0.cubin" | cut -d' ' -f1)" = "$code" ] || echo "$name: OTHER HASH than judged"
done
say "judged one by one and exported"
"$cutegen" verify "${folders[0]}"
say "verified one"
"$cutegen" server stop >/dev/null 2>&1
timeout "${LIMIT:-170}" python3 -u "$here/exports.py" "${folders[@]}" 2>&1 | tee "$out"
say "checked"
rm -rf "$work"
