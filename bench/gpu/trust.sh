#!/usr/bin/env bash
# trust.sh - what only a GPU can show about the judge, in some minutes: exports, peaks, final acceptance, a foreign verdict.
#
#     [ONLY=swish] bench/gpu/trust.sh CUTEGEN-TREE OUT-FOLDER
#
# CUTEGEN-TREE is the unpacked tarball. Six kernels (or ONLY one, by name) are judged and exported, the peaks measured,
# the exports checked, one of them is judged as a foreign candidate, and some
# cheats are judged with --accept (not with ACCEPT=0). QUICK=1 leaves torch.compile out of the check. OUT-FOLDER gets export.md, peaks.txt, foreign.txt,
# accept.md. For verdicts of all cheats and examples: cheats.sh, judge_all.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
root=$1 out=$2
work=$(mktemp -d)
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache} CUTEGEN_RUNS=$work/runs CUTEGEN_TOOLS=$work/tools CUTEGEN_RUNTIME=$work/rt CUTEGEN_SERVER=yes
export CUTLASS_PATH=${CUTLASS_PATH:-$root/share/cutegen/cutlass}
cutegen=$root/bin/cutegen examples=$root/share/cutegen/examples
begin=$(date +%s)
say() { echo "[$(($(date +%s) - begin)) s] $*"; }

kernels=()
for kernel in "$examples/kernels/swish.cu" "$repo"/tests/examples/{conv2d,cross_entropy,mlp}.cu "$here"/kernels/{softmax,diagonal_matmul}.cu; do
    [ "${ONLY:-$(basename "$kernel" .cu)}" = "$(basename "$kernel" .cu)" ] && kernels+=("$kernel")
done
judge() { timeout 60 "$cutegen" eval "$examples/$(basename "$1" .cu).py" "$1" --device cuda:0 2>&1 | head -3; }
pids=()
for kernel in "${kernels[@]}"; do # once all together, for what is to be built and loaded
    judge "$kernel" >/dev/null &
    pids+=($!)
done
timeout 60 "$cutegen" peaks --device cuda:0 >/dev/null 2>&1 &
wait $! "${pids[@]}"
say "once judged, all together"
for kernel in "${kernels[@]}"; do # this counts: nothing else runs
    name=$(basename "$kernel" .cu)
    judge "$kernel"
    "$cutegen" export last --output "$work/$name" >/dev/null
done
say "judged one by one and exported"
timeout 60 "$cutegen" peaks --device cuda:0 2>&1 | tee "$out/peaks.txt"
say peaks
folders=()
for record in "$work"/*/record.json; do folders+=("$(dirname "$record")"); done
timeout 90 python3 "$here/exports.py" "${folders[@]}" 2>&1 | tee "$out/export.md"
say checked
timeout 60 "$cutegen" eval "$examples/swish.py" "$work/swish/swish_new.py" --device cuda:0 2>&1 | tee "$out/foreign.txt" | head -8
say "the exported module judged as a foreign candidate"
[ "${ACCEPT:-1}" = 0 ] || timeout 120 python3 "$repo/tests/cheats/run.py" "$cutegen" --device cuda:0 --accept --jobs 4 --table "$out/accept.md" \
    honest divergent_barrier reads_past_the_end skips_when_written race_by_luck | cut -c1-700
say accepted
"$cutegen" server stop >/dev/null
rm -rf "$work"
