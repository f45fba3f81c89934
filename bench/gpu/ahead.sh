#!/usr/bin/env bash
# ahead.sh - what is done while a model thinks: a slow model on a GPU, whose first answer takes a while.
#
#     bench/gpu/ahead.sh TREE OUT [STEPS]
#
# torch.compile is to compile the reference meanwhile and to stand beside the other baselines from the first measurement on; the
# run must take hardly longer than the model and a run with instant answers together.
set -u
tree=$(readlink -f "$1")
out=$(readlink -f "$2")
steps=$(readlink -f "${3:-$(dirname "$0")/../../examples/replays/steps}")
work=$(mktemp -d)
export CUTEGEN_CACHE=$work/cache
cd "$work" || exit 3
cat >answer.sh <<END
n=\$(cat count 2>/dev/null || echo 0)
echo \$((n + 1)) >count
[ "\$n" != 0 ] || sleep ${SLEEP:-30}
cat $steps/softmax/0\$n-*.md
END
for model in "replay:$steps/softmax.jsonl" "exec:sh $work/answer.sh"; do
    start=$(date +%s.%N)
    "$tree/bin/cutegen" run "$tree/share/cutegen/examples/softmax.py" --device cuda:0 --model "$model" --advance last --depth ${DEPTH:-2} --no-report -v
    python3 -c "print('took %.1f s' % ($(date +%s.%N) - $start))"
    "$tree/bin/cutegen" show last --json >"$out/ahead-$(echo "$model" | cut -c1-4).json"
done
rm -rf "$work"
