#!/usr/bin/env bash
# cards.sh - the plans of all forms of recipes, for each GPU that simt stands in for: none asks for more shared memory,
# threads or blocks of a cluster than that GPU has.
#
#     tests/expert/cards.sh LADDER PLANS CUTEGEN [EVERY [PART [TASKS]]]
#
# The forms are the kernels of all ladders of tests/expert/tasks, for sm_80 (on every card) and for what the engineer
# writes for a card's own code; those that are written alike count once. Each EVERYth is planned, from number PART on, of
# each TASKSth task. Without NVRTC: a named skip (77).
set -u
ladder=$(readlink -f "$1") plans=$(readlink -f "$2") cutegen=$(readlink -f "$3") every=${4:-1} part=${5:-0} each=${6:-1}
root=$(readlink -f "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_HOME=$root
"$cutegen" doctor --json | python3 -c 'import json, sys
sys.exit(not any(c["name"] == "NVRTC" and c.get("path") for c in json.load(sys.stdin)["checks"]))' ||
    { echo "skipped: no NVRTC on this machine"; exit 77; }

number=0
bad=0
for arch in 80 90a 100a 120a; do
    case $arch in
    80) cards=(A100 RTX4090 H100 H200 B200 RTX5090) ;;
    90a) cards=(H100 H200) ;;
    100a) cards=(B200) ;;
    120a) cards=(RTX5090) ;;
    esac
    words=()
    place=0
    for task in "$root"/tests/expert/tasks/*.json; do
        place=$((place + 1))
        # decode_attention once asked for what only an A100 has: always planned
        [ $((place % each)) = 0 ] || [ "${task##*/}" = decode_attention.json ] || continue
        forms=${task##*/} forms=$work/$arch/${forms%.json}
        if [ $arch = 80 ]; then "$ladder" "$task" "$forms"; else "$ladder" "$task" "$forms" sm_$arch; fi >/dev/null || exit 1
        kept=()
        for kernel in "$forms"/*.cu; do
            [ -e "$kernel" ] || continue # no recipe takes this task
            [ $arch = 80 ] || ! cmp -s "$kernel" "$work/80/${forms##*/}/${kernel##*/}" || continue
            number=$((number + 1))
            [ $((number % every)) != "$part" ] && [ "${task##*/}" != decode_attention.json ] || kept+=("$kernel")
        done
        [ ${#kept[@]} = 0 ] || words+=("$task" "${kept[@]}")
    done
    [ ${#words[@]} = 0 ] || "$plans" $arch "${cards[@]}" "${words[@]}" || bad=1
done
echo "$number forms, each ${every}th planned"
[ $bad = 0 ] && [ $((number * each)) -ge 300 ]
