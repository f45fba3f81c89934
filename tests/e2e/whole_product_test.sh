#!/usr/bin/env bash
# whole_product_test.sh - the whole product on simt and without a key, as a user meets it.
#
#     tests/e2e/whole_product_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap '"$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
unset OPENAI_API_KEY ANTHROPIC_API_KEY
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=$work/rt # as users have it, but this test's own
cd "$work" || exit 3
. "$root/tests/tap.sh"

cutegen() { "$program" "$@"; }

run cutegen describe "$root/examples/swish.py"
ok "describe says what the task is" 0 '^class +pointwise'

run cutegen run "$root/examples/swish.py"
ok "a pointwise task ends with a verified kernel" 0 '^best +.*depth'
ok "its times are marked as modelled" 0 '^\* modelled for H200'
ok "it says what to do next" 0 '^next +cutegen export'
first=$(sed -n 's/^run  *//p' <<<"$out")

run cutegen show last --json
ok "it made at least two steps beyond depth 0" 0 '"depth":2'
run cutegen runs --json
ok "it is in the store, done" 0 "\"run\":\"$first\".*\"state\":\"done\""
run cat "$work/runs/$first/report.html"
ok "its report is one page" 0 '</html>'
run grep -cE '<(script|link|img)[^>]+(src|href)="?https?:' "$work/runs/$first/report.html"
ok "the page needs nothing from outside" 1 '^0$'

run cutegen export last --output "$work/out"
ok "the best kernel is exported" 0 'ModelNew'
run grep -l 'class ModelNew' -r "$work/out"
ok "as a module" 0 '\.py$'

cutegen show last --source >"$work/best.cu"
run cutegen eval "$root/examples/swish.py" "$work/best.cu"
ok "eval of the best kernel passes" 0 '^pass'
sed 's/__global__ void/__global__ vide/' "$work/best.cu" >"$work/bad.cu"
run cutegen eval "$root/examples/swish.py" "$work/bad.cu"
ok "eval of a kernel that does not compile exits 1 and says where" 1 '^compile error'
run cutegen eval --json "$root/examples/swish.py" "$work/bad.cu"
ok "the same as JSON" 1 '"verdict":"compile error".*"exit":1'

run cutegen run "$root/examples/swish.py" --fresh --patience 1 --no-report
ok "a ladder goes on to its end whatever the patience with a model" 0 '^ended +The pointwise ladder is at its end'
run cutegen run "$root/examples/square_matmul.py" --depth 2
ok "a matrix product ends with a verified kernel" 0 '^best +.*depth'
run cutegen report "$first" last --output "$work/both.html"
ok "two runs share a page" 0 'both\.html'

for transcript in "$root"/examples/replays/*.jsonl; do
    case $transcript in *-triton.jsonl) continue ;; esac # target_test.sh plays it where Triton is installed
    [ -e "$transcript" ] || { skip "a recorded model is played again" "no transcript"; break; }
    task=$root/examples/$(basename "$transcript" | sed 's/[-.].*//').py
    [ -f "$task" ] || task=$root/examples/swish.py
    run cutegen run "$task" --model "replay:$transcript"
    ok "a recorded model is played again: $(basename "$transcript")" 0 '^best +.*depth'
done

run cutegen run "$root/examples/swish.py"
ok "a second run begins with what the first one found" 0 '^ +0 +the best kernel of run'

# Stopped by hand, and killed; each goes on. Both while the model thinks about the second kernel: it says so, and
# waits until somebody writes into the gate.
cat >model.sh <<'END'
cat >/dev/null
k=$(cat count 2>/dev/null || echo 0)
echo $((k + 1)) >count
if [ "$k" = 1 ] && [ -p gate ]; then
    : >thinking
    read -r answer <gate
fi
cat "steps/0$k-"*.md 2>/dev/null || echo "I have no idea."
END
ln -s "$root/examples/replays/steps/swish" steps

# Returns when the model thinks; sets $pid.
start_and_think()
{
    rm -f gate thinking count
    mkfifo gate
    "$program" run "$root/examples/swish.py" --fresh --model "exec:cd '$work' && sh model.sh" --depth 2 --repairs 0 >log 2>&1 &
    pid=$!
    until [ -e thinking ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
}

# Whatever the command waits for, it says that it was told to stop.
told_to_stop() { until grep -q 'finishing this attempt' log || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done; }
ended() { wait $pid; code=$?; out=$(cat log); }

start_and_think
kill -INT $pid
told_to_stop
echo go >gate
ended
ok "Ctrl-C stops after the call with exit code 130" 130 'cutegen resume'
ok "what was finished then counts" 130 '^best +depth 0'
rm gate
run cutegen resume last
ok "a stopped run goes on" 0 '^best +.*depth'
out=$(cat count)
ok "and does not ask again for what was answered" 0 '^3$'

# The same while the second kernel is built: the builder stands still until Ctrl-C has been seen.
export CUTEGEN_CACHE=$work/cache # so that it has to be built
start_and_think
builder=$("$program" server status --json | python3 -c '
import json, sys
print(*[p["pid"] for p in json.load(sys.stdin)["processes"] if (p["kind"], p["state"]) == ("builder", "lent")])')
kill -STOP $builder
echo go >gate
until "$program" show last --json | grep -q '"depth": *1' || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -INT $pid
told_to_stop
kill -CONT $builder
ended
ok "Ctrl-C in the middle of an attempt stops after it" 130 'cutegen resume'
ok "that attempt counts" 130 '^best +depth 1'
unset CUTEGEN_CACHE

start_and_think
kill -KILL $pid
wait $pid 2>/dev/null
echo go >gate # what it was asked goes on without the run
rm gate
run cutegen resume last
ok "a killed run goes on" 0 '^best +.*depth'
out=$(cat count)
ok "with the reply that came after the kill" 0 '^3$'

# What the machine or the user gets wrong.
printf 'import nothing_of_this_name\n' >"$work/broken.py"
run cutegen run "$work/broken.py"
ok "a task that does not load says so" '2' 'nothing_of_this_name'
printf 'x = 1\n' >"$work/empty.py"
run cutegen run "$work/empty.py"
ok "a task without a Model says so" '2' 'Model'
run cutegen eval "$root/examples/swish.py" "$work/best.cu" --cc /nowhere/cc
ok "a missing compiler is the machine's fault" 3 '/nowhere/cc'
run cutegen run "$root/examples/swish.py" --python /nowhere/python
ok "a missing Python is the machine's fault" 3 '/nowhere/python'

if unshare -Urm true 2>/dev/null; then
    mkdir -p "$work/full"
    run unshare -Urm sh -c "mount -t tmpfs -o size=64k none '$work/full' && '$program' run '$root/examples/swish.py' --runs '$work/full/runs'"
    ok "a full disk is told, with what to do" 3 'space|full'
    mkdir -p "$work/readonly"
    run unshare -Urm sh -c "mount -t tmpfs -o ro none '$work/readonly' && '$program' run '$root/examples/swish.py' --runs '$work/readonly/runs'"
    ok "a read-only folder is told, with what to do" 3 '--runs DIR'
else
    skip "a full disk is told" "no user namespaces"
    skip "a read-only folder is told" "no user namespaces"
fi

echo "1..$n"
exit $failed
