#!/usr/bin/env bash
# accept_test.sh - acceptance is a step: a racy kernel that wins on time is passed over, and everything that is asked agrees.
#
#     tests/e2e/accept_test.sh PATH-TO-CUTEGEN
#
# On simt the acceptance is the full check of a kernel that was judged with less (--check off).
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
task=$root/tests/cheats/tasks/rows.py
racy=$root/tests/cheats/race_by_luck.cu
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
    tail -n 25 log result shown | sed 's/^/# /'
    failed=1
}

# One row per thread block of one thread: right, and slower than any other.
cat >slow.cu <<'END'
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void rows(float const *x, float *y, int columns)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * columns), make_shape(columns)); // (columns)
    float sum = 0.0f;
    for (int i = 0; i < columns; ++i)
        sum += gX(i);
    y[blockIdx.x] = sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];

    return CUTEGEN_LAUNCH(call, (rows), cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(1, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]),
                          (int)x->shape[1]);
}
#endif
END

reply() # CHANGE FILE
{
    printf 'CHANGE: %s\n\n```cpp\n' "$1"
    cat "$2"
    printf '```\n'
}

# Answers number k with answers/k.md.
cat >model.sh <<'END'
k=$(cat count 2>/dev/null || echo 0)
echo $((k + 1)) >count
cat "answers/$k.md" 2>/dev/null || echo "STOP: nothing more."
END

run() # ANSWER...
{
    local k=0
    rm -rf answers count
    mkdir answers
    for answer in "$@"; do cp "$answer" answers/$((k++)).md; done
    "$program" run "$task" --device simt --check off --accept --model "exec:sh $work/model.sh" --depth 1 --repairs 0 >result 2>log
    code=$?
    "$program" show last >shown 2>>log
    "$program" show last --json >shown.json 2>>log
    id=$("$program" show last --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["run"])')
}

shows() # PYTHON-EXPRESSION over the JSON of the run, r
{
    python3 -c 'import json, sys
r = json.load(open("shown.json"))
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}

reply "one thread per row" slow.cu >slow.md
reply "no barrier" "$racy" >racy.md
run slow.md racy.md
ok "the racy kernel passes and is the faster one" \
    shows 'r["attempts"][1]["verdict"] == "pass" and r["attempts"][1]["time_us"] < r["attempts"][0]["time_us"]'
ok "its acceptance is stored as a race" shows 'r["attempts"][1]["acceptance"]["verdict"] == "race"'
ok "the next best is accepted instead" shows 'r["best_attempt"] == 1 and r["accepted"] == "yes"'
ok "the run has a kernel: exit status 0" [ "$code" = 0 ]
ok "the result says which was accepted" grep -q "^accepted  attempt 1:" result
ok "the result says which was not" grep -q "NOT ACCEPTED: attempt 2: race" result
ok "show marks the attempt that was refused" grep -q "not accepted" shown
ok "show names the accepted one" grep -q "^accepted attempt 1:" shown
ok "the page says so too" grep -q "Accepted: simt.*full check found nothing" "runs/$id/report.html"
ok "export takes the accepted kernel" bash -c "'$program' export last && ! grep -rq 'THREADS - 1' runs/$id/export"

# the built-in engineer begins with the best kernel it knows of this task: never with one that was refused
run racy.md
ok "a run with nothing but a racy kernel ends with exit status 1" [ "$code" = 1 ]
ok "it is not accepted, and the store says why" shows 'r["accepted"] == "no" and r["accepted_why"].startswith("race")'
ok "the result says so" grep -q "^NOT ACCEPTED attempt 1: race" result
ok "no export is suggested" bash -c '! grep -q "cutegen export" result shown'
ok "show says so" grep -q "^NOT ACCEPTED attempt 1: race" shown
ok "the page says so" grep -q "Not accepted</strong>: race" "runs/$id/report.html"

# resumed: nothing is checked again
"$program" resume last --json >again 2>>log
ok "a resumed run knows the refusal and ends the same way" \
    bash -c "[ $? = 1 ] && ! grep -q '\"accept\"' again && grep -q '\"accepted\": *\"no\"' again"

# eval judges by the same function
"$program" eval "$task" "$racy" --device simt --check off --accept --json >shown.json 2>>log
ok "eval refuses the same kernel with exit status 1" [ $? = 1 ]
ok "eval's verdict is the refusal" shows 'r["verdict"] == "race" and r["accepted"] is None'
"$program" show last --json >shown.json 2>>log
ok "the store holds the same" shows 'r["accepted"] == "no" and r["attempts"][0]["verdict"] == "pass"'
"$program" eval "$task" slow.cu --device simt --accept --json >shown.json 2>>log
ok "a kernel judged under the full check is accepted" shows 'r["accepted"] == "judged under simt\u2019s full check".replace("\u2019", chr(39))'
echo "1..$n"
exit $failed
