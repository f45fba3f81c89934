#!/usr/bin/env bash
# suite_test.sh - a suite on simt with the built-in engineer, two at a time, killed in the middle and gone on with.
#
#     tests/e2e/suite_test.sh PATH-TO-CUTEGEN [LIST|DIR]       default: three small tasks and one that does not load
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
unset OPENAI_API_KEY ANTHROPIC_API_KEY
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
. "$root/tests/tap.sh"

if [ $# -gt 1 ]; then
    source=$(readlink -f "$2")
else
    # A KernelBench checkout's shape: level folders, numbered files, a helper that is not a task.
    mkdir -p bench/level1 bench/level2
    cp "$root/examples/relu.py" bench/level1/19_ReLU.py
    cp "$root/examples/swish.py" bench/level1/2_Swish.py
    cp "$root/examples/sigmoid.py" bench/level2/1_Sigmoid.py
    printf 'import nothing_of_this_name\nclass Model: pass\n' >bench/level2/3_Broken.py
    printf 'x = 1\n' >bench/level1/helper.py
    source=$work/bench
fi
shift
shift 2>/dev/null

"$program" suite "$source" --jobs 2 --depth "${DEPTH:-2}" >killed.out 2>&1 &
pid=$!
half=${HALF:-1} # killed once so many tasks have ended
for _ in $(seq 36000); do
    [ "$(grep -cE '^ *[0-9]+ of [0-9]+ ' killed.out)" -ge "$half" ] && break
    kill -0 $pid 2>/dev/null || break
    sleep 0.1
done
kill -KILL $pid 2>/dev/null
wait $pid 2>/dev/null
tasks=$(sed -n 's/^suite .* \([0-9]*\) tasks.*/\1/p' killed.out)
# As the store has it: it may know of one more than was printed.
done_before=$(python3 -c 'import sqlite3; print(sqlite3.connect("runs/store.db").execute(
"SELECT count(*) FROM suite_tasks WHERE ended").fetchone()[0])')
code=0 out="$done_before"
ok "killed in the middle: $done_before of $tasks tasks had ended" 0 '[0-9]'
run "$program" suite --resume last --jobs 2
printf '%s\n' "$out" >resumed.out
ok "it goes on" 0 "tasks, $done_before of them done"
csv=$(echo runs/*-suite-*/suite.csv)
out=$(($(wc -l <"$csv") - 1))
ok "its table has every task" 0 "^$tasks\$"
out=$(cut -d, -f1 "$csv" | sort | uniq -d | wc -l)
ok "each of them once" 0 '^0$'
out=$(python3 - "$csv" <<'END'
import csv, sqlite3, sys
rows = list(csv.DictReader(open(sys.argv[1])))
print("left", sum(r["state"] not in ("correct", "no kernel", "no run") for r in rows))
db = sqlite3.connect("runs/store.db")
print("runs", db.execute("SELECT count(*) - count(DISTINCT task) FROM runs").fetchone()[0])
END
)
ok "no task is left and none has two runs" 0 'left 0'
ok "none has two runs" 0 'runs 0'
out=$(cat resumed.out)
ok "correctness rate, geometric mean and fast_p are told" 0 'fast_p +0\.8: [0-9]+ %   1: [0-9]+ %   1\.5: [0-9]+ %   2: [0-9]+ %'
out=$(cat runs/*-suite-*/report.html)
ok "and there is a page" 0 'geometric mean'
if [ "$source" = "$work/bench" ]; then
    out=$(head -3 "$csv" | cut -d, -f1 | tr '\n' ' ')
    ok "numbered files are in order, helpers are left out" 0 '"2_Swish" "19_ReLU" '
    out=$(grep Broken "$csv")
    ok "a task that does not load says why" 0 'no run.*nothing_of_this_name'
    run "$program" suite "$source/level1" --jobs 2 --budget-calls 3
    ok "a shared budget ends all of them" 4 'budget'
    out=$(python3 -c 'import sqlite3; print(sqlite3.connect("runs/store.db").execute(
"SELECT count(*) FROM calls WHERE run IN (SELECT id FROM runs WHERE suite LIKE ?)", ("%level1%",)).fetchone()[0])')
    ok "they made three calls together" 4 '^3$'
    run "$program" suite --resume last --jobs 2 --budget-calls 8
    ok "it goes on with a larger one" '[04]' 'correct +[12] of 2'
    printf '{"stage": "synthesize", "reply": "nothing"}\n' >nothing.jsonl
    echo "$root/examples/swish.py" >one
    run "$program" suite one --model replay:nothing.jsonl --jobs 1
    run "$program" show last --json
    ok "a suite of a model shows it an example of another operator, and the run says so" '*' '"example":"other"'
    run "$program" suite one --model replay:nothing.jsonl --jobs 1 --example best
    run "$program" show last --json
    ok "unless told otherwise" '*' '"example":"best"'
    "$program" suite one --jobs 1 --depth 0 --fresh >retried.out 2>&1 &
    pid=$!
    for _ in $(seq 12000); do # until the task's own process is there
        child=$(pgrep -f -- "--suite .*--runs $work/runs" | head -1)
        [ -n "$child" ] && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.02
    done
    kill -KILL "$child" 2>/dev/null
    wait $pid
    code=$? out=$(cat retried.out)
    ok "a step that the machine failed is tried again" 0 'correct +1 of 1 tasks'
    ok "and counted apart" 0 'retried +1 times'
    run "$program" suite nowhere --runs "$work/untouched"
    ok "a folder that is not there is wrong use" 2 'nowhere'
    out=$(ls "$work/untouched" 2>&1)
    ok "and leaves no store behind" '*' 'No such file'
fi
[ -z "${KEEP:-}" ] || cp "$csv" resumed.out runs/*-suite-*/report.html "$KEEP"
echo "1..$n"
exit $failed
