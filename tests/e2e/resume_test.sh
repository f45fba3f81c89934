#!/usr/bin/env bash
# resume_test.sh - a resumed run asks the same server, says what it changes, and ends when the model says so.
#
#     tests/e2e/resume_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
servers=()
clean_up()
{
    CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1
    [ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null
    rm -rf "$work"
}
trap clean_up EXIT
unset ANTHROPIC_API_KEY http_proxy OPENAI_BASE_URL
export OPENAI_API_KEY=sk-resume-4711-0815 XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
. "$root/tests/tap.sh"

cutegen() { "$program" "$@"; }

# serve FOLDER LOG : answers from FOLDER; its address is in $url.
serve()
{
    local pipe
    pipe=$(mktemp -u "$work/in.XXXX")
    mkfifo "$pipe"
    python3 "$root/tests/e2e/script_server.py" "$1" "$2" <"$pipe" >"$pipe.port" &
    servers+=($!)
    # shellcheck disable=SC2034  # held open: the server ends with it
    exec {keep}>"$pipe"
    until [ -s "$pipe.port" ]; do sleep 0.05; done
    url=http://127.0.0.1:$(cat "$pipe.port")/v1
}

steps=$root/examples/replays/steps/swish
task=$root/examples/swish.py
first=$(find "$steps" -name '00-*.md')
second=$(find "$steps" -name '01-*.md')

# ---- the same server ---------------------------------------------------------------
mkdir ours
cp "$first" ours/00.md
cp "$second" ours/01.md
cp "$first" ours/02.md
serve "$PWD/ours" "$PWD/requests"
ours=$url
run cutegen run "$task" --model openai:scripted --base-url "$ours" --depth 1 --budget-calls 1 --max-tokens 3000 --no-report
ok "a run is stopped by its budget" 4 'budget of 1 calls'
# Whatever the environment says now; nothing listens there.
run env OPENAI_BASE_URL=http://127.0.0.1:9/v1 "$program" resume last --budget-calls 9
ok "resumed, it goes on" 0 '^best +.*depth 1'
run grep -c . requests
ok "and asks the server it began with" 0 '^2$'
run cutegen show last --json
ok "the address is kept" 0 "\"base_url\": ?\"$ours\""
run cutegen runs --json
ok "an unknown cost is null" 0 '"cost_usd": ?null'
run grep -oE -e '--base-url [^ ]+ --example [a-z]+ --device simt --depth 1' runs/*/report.html
ok "the report says how to do it again" 0 "$ours"

mkdir other
cp "$second" other/00.md
serve "$PWD/other" "$PWD/requests2"
run cutegen run "$task" --model openai:scripted --base-url "$ours" --depth 1 --budget-calls 1 --no-report
ok "another run is stopped" 4 'budget of 1 calls'
run cutegen resume last --base-url "$url" --budget-calls 9 --no-report
ok "and goes on" 0 '^best +.*depth 1'
run grep -c . requests requests2
ok "at another server, because the command line says so" 0 '^requests2:1$'

# ---- depth ----------------------------------------------------------------------------
run cutegen run "$task" --model "replay:$steps.jsonl" --advance last --depth 1 --no-report
ok "a run to depth 1" 0 'depth 1 reached'
run cutegen resume last --depth 2 --no-report
ok "is taken further by resume --depth" 0 'depth 2 reached'
run cutegen resume last --no-report
ok "and stays so" 0 'depth 2 reached'
run cutegen resume last --width 3 --no-report
ok "a flag that cannot be changed is not ignored silently" 0 '--width is ignored'

# ---- STOP -------------------------------------------------------------------------------
mkdir stop
cp "$first" stop/00.md
echo 'STOP: every byte is moved once' >stop/01.md
echo 'STOP: I am sure' >stop/02.md
echo 'never asked for' >stop/03.md
serve "$PWD/stop" "$PWD/requests3"
run cutegen run "$task" --model openai:scripted --base-url "$url" --depth 8
ok "a model that says STOP twice ends the search" 0 'the model stopped: I am sure'
ok "with what it cost" 0 '^cost +unknown, 3 calls, [0-9]+ tokens'
run grep -c . requests3
ok "after three calls" 0 '^3$'
run python3 -c 'import json; print(json.loads(open("requests3").readlines()[2])["messages"][-1]["content"][-400:])'
ok "the first time it is asked for a different idea" 0 'every byte is moved once.*different kind'

# ---- small things ---------------------------------------------------------------------------
run bash -c "set -o pipefail; for i in 1 2 3 4 5; do '$program' help | head -1; done"
ok "help | head does not complain" 0 '^cutegen turns'
run bash -c "'$program' help | head -1 2>&1"
if grep -q 'cannot write' <<<"$out"; then code=1; fi
ok "on stderr either" 0 '^cutegen turns'
run bash -c "'$program' help >/dev/full"
ok "a full disk is still told" 3 'cannot write to stdout'
run cutegen show last
ok "show and run tell the same error" 0 'max relative error'

echo "1..$n"
exit $failed
