#!/usr/bin/env bash
# background_test.sh - what goes on while a model thinks: the current best kernel is checked, and nothing is left to do at the end.
#
#     tests/e2e/background_test.sh PATH-TO-CUTEGEN
#
# The model here answers only once the log says that the look is over: a loop that did nothing meanwhile would get its answer late, and the
# test fails. On simt the look is the full check of a kernel that was judged with less (--check off); on a GPU: bench/gpu/ahead.sh.
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
cd "$work" || exit 3
n=0
failed=0

# ok SENTENCE COMMAND... : the command succeeds.
ok()
{
    n=$((n + 1))
    if "${@:2}" >/dev/null 2>&1; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    tail -n 25 log result | sed 's/^/# /'
    failed=1
}

# Answers number k with answers/k.md, or with nothing; number 1 only when the log says that the first attempt was checked.
cat >model.sh <<'END'
k=$(cat count 2>/dev/null || echo 0)
echo $((k + 1)) >count
[ "$k" != 1 ] || for i in $(seq 6000); do
    grep -q "the check of attempt 1:" log && echo "in time" >thought && break
    sleep 0.2
done
cat "answers/$k.md" 2>/dev/null || echo "I have no idea."
END

run() # TASK ANSWER...
{
    local task=$1 k=0
    shift
    rm -rf answers count thought
    mkdir answers
    for answer in "$@"; do cp "$answer" answers/$((k++)).md; done
    "$program" run "$task" --device simt --check off --accept --model "exec:sh $work/model.sh" --advance last --depth 1 --repairs 0 \
        --no-report --json -v >result 2>log
}

steps=$root/examples/replays/steps/swish
run "$root/examples/swish.py" "$steps"/00-*.md "$steps"/01-*.md
ok "while the model thinks about depth 1, the kernel of depth 0 is checked" grep -qx "in time" thought
ok "the log says so" grep -q "while the model thinks: checking attempt 1" log
ok "the kernel that won is accepted" grep -q '"ended": *"[^"]*accepted: simt.s full check found nothing' result
ok "the winner is checked at the end" grep -q '"accept"' result

# a kernel that reads past the end, which only the full check sees; then a worse one, so that the first is still the best
{
    printf 'CHANGE: one element per thread\n\n```cpp\n'
    cat "$root/tests/cheats/reads_past_the_end.cu"
    printf '```\n'
} >bad.md
run "$root/tests/cheats/tasks/gate.py" bad.md
ok "a kernel that does not stand the look is not accepted" grep -q '"ended": *"[^"]*NOT ACCEPTED: attempt 1: unsafe memory' result
ok "it was checked while the model thought, and not again at the end" bash -c '! grep -q "\"accept\"" result'
echo "1..$n"
exit $failed
