#!/usr/bin/env bash
# backward_test.sh - gradients as a task: what the built-in engineer writes for them passes against float64.
#
#     tests/expert/backward_test.sh PATH-TO-CUTEGEN [all]         all: more tasks (SWEEP=modules)
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=6 CUTEGEN_DEVICE=simt
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
n=0
failed=0

say() # WHETHER SENTENCE
{
    n=$((n + 1))
    if [ "$1" = 0 ]; then
        echo "ok $n - $2"
        return
    fi
    echo "not ok $n - $2"
    tail -n 20 log result | sed 's/^/# /'
    failed=1
}

tasks="gelu linear affine_norm cross_entropy"
[ "${2:-}" != all ] || tasks="$tasks tanh softmax rms_norm relu silu exponential log_softmax layer_norm"
for task in $tasks; do
    "$program" run "$root/tests/expert/backward/$task.py" --depth 0 --no-report >result 2>log
    say $? "$task: its gradients pass in every distribution"
done
"$program" describe "$root/examples/swish.py" --backward >result 2>log
grep -q "outputs   grad_x" result
say $? "--backward makes any task one of gradients"
grep -q "grad_out" result
say $? "the upstream gradient is an input"
# the forward's kernel is not its backward
"$program" run "$root/tests/expert/backward/softmax.py" --depth 0 --no-report >result 2>log
"$program" show last --source 2>>log | sed 's/return \(.*\) \* softmax;/return softmax;/' >wrong.cu
"$program" eval "$root/tests/expert/backward/softmax.py" wrong.cu --json >result 2>>log
python3 -c 'import json, sys; sys.exit(json.load(open("result"))["verdict"] != "wrong values")'
say $? "a kernel that gives something else than the gradient is wrong"
echo "1..$n"
exit $failed
