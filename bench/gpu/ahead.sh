#!/usr/bin/env bash
# ahead.sh - what is done while a model thinks: the same answers from a model that takes its time and at once, on a GPU.
#
#     [FIRST=30] [THINK=12] bench/gpu/ahead.sh TREE OUT [STEPS]
#
# While the slow model thinks about its first answer, torch.compile compiles the reference; about later ones, the sanitizers and simt
# look at the best kernel of now (--accept). The third answer of swish does not help, so its best kernel has been looked at when the
# run ends. Told at the end: seconds of both runs, and of the slow one what is more than the model's own time.
set -u
tree=$(readlink -f "$1")
out=$(readlink -f "$2")
steps=$(readlink -f "${3:-$(dirname "$0")/../../examples/replays/steps}")
first=${FIRST:-30} think=${THINK:-12}
work=$(mktemp -d)
export CUTEGEN_CACHE=${CUTEGEN_CACHE:-$work/cache}
cd "$work" || exit 3
cat >answer.sh <<END
n=\$(cat count 2>/dev/null || echo 0)
echo \$((n + 1)) >count
[ "\$n" = 0 ] && sleep $first || sleep $think
cat $steps/swish/0\$n-*.md
END
for model in "exec:sh $work/answer.sh" "replay:$steps/swish.jsonl"; do
    kind=${model%%:*}
    start=$(date +%s.%N)
    "$tree/bin/cutegen" run "$tree/share/cutegen/examples/swish.py" --device "${DEVICE:-cuda:0}" --model "$model" --advance last --depth 2 \
        --accept --no-report --runs "$work/$kind" -v --json >"$out/ahead-$kind.jsonl" 2>"$out/ahead-$kind.err"
    python3 - "$out/ahead-$kind.jsonl" "$kind" "$start" "$first" "$think" <<'END'
import json, sys, time
events = [json.loads(line) for line in open(sys.argv[1])]
end = next((e for e in events if e.get("event") == "result"), {})
took, thought = time.time() - float(sys.argv[3]), (float(sys.argv[4]) + 2 * float(sys.argv[5])) * (sys.argv[2] == "exec")
looks = [e for e in events if e.get("event") == "stage" and e.get("text") == "accept"]
names = [b["name"] for b in ((end.get("best") or {}).get("measurement") or {}).get("baselines") or []]
print(f"{sys.argv[2]}: {took:.1f} s, of which the model thought {thought:.0f}; beside that {took - thought:.1f} s")
print(f"  baselines {names}; waited for the look at the end: {'yes' if looks else 'no'}; ended: {end.get('ended')}")
END
done
rm -rf "$work"
