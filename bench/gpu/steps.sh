#!/usr/bin/env bash
# steps.sh - the answers written by hand (examples/replays/steps) on a GPU: trajectories, reports, transcripts.
#
#     bench/gpu/steps.sh TREE OUT [STEPS]      TREE: an unpacked relocatable cutegen; STEPS: the folder of replays
set -u
tree=$(readlink -f "$1")
out=$(readlink -f "$2")
steps=$(readlink -f "${3:-$(dirname "$0")/../../examples/replays/steps}")
cutegen=$tree/bin/cutegen
examples=$tree/share/cutegen/examples
work=$(mktemp -d)
export CUTEGEN_CACHE=$work/cache
cd "$work" || exit 3
for task in swish softmax square_matmul; do
    printf '\n== %s\n' "$task"
    time "$cutegen" run "$examples/$task.py" --device cuda:0 --model "replay:$steps/$task.jsonl" --advance last \
        --record "$out/$task.jsonl" --no-report
    "$cutegen" show last >"$out/$task.txt"
    "$cutegen" show last --json >"$out/$task.json"
    "$cutegen" report last --output "$out/$task.html" >/dev/null
done
rm -rf "$work"
