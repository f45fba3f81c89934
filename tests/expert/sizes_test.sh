#!/usr/bin/env bash
# sizes_test.sh - numbers that follow from sizes: a kernel written at reduced sizes is right at others, or refuses them.
#
#     tests/expert/sizes_test.sh PATH-TO-CUTEGEN [all]         all: more tasks (SWEEP=modules)
#
# Each task of tests/expert/sizes is run at the sizes that suit simt; its kernel is then judged at sizes it never saw.
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
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
    tail -n 20 log | sed 's/^/# /'
    failed=1
}

# judged TASK VERDICT SETTINGS... : the kernel the built-in engineer writes, at other sizes.
judged()
{
    local task=$root/tests/expert/sizes/$1.py want=$2 got
    shift 2
    "$program" run "$task" --device simt --depth 0 --no-report --json >result 2>log
    say $? "$(basename "$task" .py): a kernel at reduced sizes passes"
    "$program" show last --source >kernel.cu 2>>log
    "$program" eval "$task" kernel.cu --device simt --json "$@" >result 2>>log
    got=$(python3 -c 'import json; print(json.load(open("result"))["verdict"])')
    echo "$got" >>log
    [ "$got" = "$want" ]
    say $? "$(basename "$task" .py): at $(echo "$*" | sed 's/--set //g'): $want"
}

judged root pass --set COLUMNS=4100
judged mean pass --set ROWS=48 --set COLUMNS=1000
judged elements pass --set M=192 --set K=160 --set N=64
judged attention pass --set TOKENS=256
if [ "${2:-}" = all ]; then
    judged unbiased pass --set ROWS=48 --set COLUMNS=1000
    judged positions pass --set ROWS=48 --set COLUMNS=1000
    judged table "bad plan" --set ROWS=48 --set COLUMNS=1000 # no formula found either
fi
# written as a literal, in a recipe's own form: the plan says no
judged epsilon "bad plan" --set ROWS=48 --set COLUMNS=1000
# no formula found: likewise
judged logarithm "bad plan" --set ROWS=48 --set COLUMNS=1000
# at the sizes of the file, of which simt's are a part: right, or the plan says no
judged weights pass --no-scale
for task in branch window; do judged $task "bad plan" --no-scale; done
if [ "${2:-}" = all ]; then
    for task in numel length product; do judged $task pass --no-scale; done
    for task in quarter heads; do judged $task "bad plan" --no-scale; done
fi
"$program" describe "$root/tests/expert/sizes/branch.py" --device simt >result 2>log
grep -q "the operators themselves depend on sizes" result
say $? "the description says that the operators depend on sizes"
"$program" describe "$root/tests/expert/sizes/logarithm.py" --device simt >result 2>log
grep -q "depends on sizes in a way that was not found" result
say $? "the description says that no formula was found"
"$program" describe "$root/tests/expert/sizes/root.py" --device simt >result 2>log
grep -q "the number 256 in aten.div.Tensor is sqrt(in0.shape\[1\]): compute it in the plan" result
say $? "the description has the formula, for a model to read"
echo "1..$n"
exit $failed
