#!/usr/bin/env bash
# profile.sh - the profile schedule on a GPU: the same answers with a profile from depth 1, from depth 4 and never; ncu is counted.
#
#     [TASKS="softmax"] [FROM="1 99"] [DEPTH=3] [SET=BATCH=512] bench/gpu/profile.sh TREE OUT [STEPS]      TREE: an unpacked relocatable cutegen; STEPS: the folder of replays
set -u
tree=$(readlink -f "$1")
out=$(readlink -f "$2")
steps=$(readlink -f "${3:-$(dirname "$0")/../../examples/replays/steps}")
cutegen=$tree/bin/cutegen
examples=$tree/share/cutegen/examples
work=$(mktemp -d)
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache} CUTEGEN_RUNS=$work/runs
cp -r "$steps" "$work/steps"
cd "$work" || exit 3
for task in ${TASKS:-softmax square_matmul}; do
    runs=()
    for from in ${FROM:-1 4 99}; do
        printf '\n== %s, profile from depth %s\n' "$task" "$from"
        start=$(date +%s.%N)
        "$cutegen" run "$examples/$task.py" --device cuda:0 --model "replay:steps/$task.jsonl" --advance last --depth "${DEPTH:-12}" ${SET:+--set "$SET"} \
            --profile-from $from --json --no-report >events.jsonl 2>errors
        tail -3 errors
        python3 - events.jsonl "$start" <<'END'
import json, sys, time
depth, seen = -1, []
for line in open(sys.argv[1]):
    e = json.loads(line)
    if e.get("event") == "depth": depth = e["depth"]
    if e.get("event") == "stage" and e.get("text") == "profile": seen.append(depth + 1)
    if e.get("event") == "result": print("best depth", e["best"]["depth"], "%.1f us" % e["best"]["measurement"]["time_us"])
print("profiled for depths", seen, "in %.1f s" % (time.time() - float(sys.argv[2])))
END
        runs+=("$("$cutegen" runs --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')")
        [ "$from" != 1 ] || for attempt in 1 3 5 7; do "$cutegen" show last --attempt $attempt; done
    done
    "$cutegen" report "${runs[@]}" --output "$out/$task-profile.html"
done
rm -rf "$work"
