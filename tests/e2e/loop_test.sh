#!/usr/bin/env bash
# loop_test.sh - the loop on simt against a server that speaks the protocol and answers from a script.
#
#     tests/e2e/loop_test.sh PATH-TO-CUTEGEN
#
# The script (tests/e2e/script) holds what models send: an answer without code, one that is cut in the middle, a kernel that
# does not compile, a patch that does not apply, wrong values, a cheat, and good steps.
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
unset OPENAI_API_KEY ANTHROPIC_API_KEY http_proxy
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=$work/rt # a warm server of this test's own
cd "$work" || exit 3
. "$root/tests/tap.sh"

cutegen() { "$program" "$@"; }

serve()
{
    rm -f in port
    mkfifo in
    python3 "$root/tests/e2e/script_server.py" "$1" "$work/requests" <in >port &
    server=$!
    exec 9>in
    while [ ! -s port ]; do sleep 0.05; done
    url=http://127.0.0.1:$(cat port)/v1
}

# ---- a run through every stage --------------------------------------------------
key=sk-planted-5f2c9d7e1b-$$ # of this run: another may be under way beside it
serve "$root/tests/e2e/script"
run env OPENAI_API_KEY=$key "$program" run "$root/examples/swish.py" --model openai:scripted --base-url "$url" --depth 2 \
    --record t.jsonl -vv
ok "a run against a scripted server ends with a verified kernel" 0 '^best +.*depth 2'
printf '%s\n' "$out" >run.out
for verdict in 'no code' 'compile error' 'edits do not apply' 'wrong values' 'refused'; do
    ok "on its way it met: $verdict" 0 "$verdict"
done
out=$(python3 -c 'import json
r = [json.loads(l) for l in open("requests")]
print(len(r), all(x["authorized"] for x in r), "cut off at the output limit" in r[2]["messages"][-1]["content"],
      "could not be used" in r[1]["messages"][-1]["content"],
      "remember the result of the last call: refused" in r[-1]["messages"][-1]["content"])')
ok "every call came once, the cut one was continued, rejections and history were told" 0 '^12 True True True True$'
run cutegen show last --json
ok "tokens, cached tokens and the finish reason are stored" 0 '"cached_tokens": ?[1-9].*"finish_reason": ?"stop"|"finish_reason": ?"stop".*"cached_tokens": ?[1-9]'
cutegen show last --source >first.cu
run cutegen export last --output out
ok "its kernel is exported" 0 'ModelNew'
run cutegen eval "$root/examples/swish.py" first.cu
ok "and passes on its own" 0 '^pass'

run cutegen run "$root/examples/swish.py" --model replay:t.jsonl --depth 2
ok "the transcript plays without the server" 0 '^best +.*depth 2'
cutegen show last --source >second.cu
run cmp first.cu second.cu
ok "to the same kernel" 0 ''

# ---- the key ----------------------------------------------------------------------
run grep -rlF "$key" "$work" --exclude-dir=config
ok "the key is in no file: store, transcript, report, export, output, server's log" 1 '^$'
run env OPENAI_API_KEY=$key "$program" run "$root/examples/swish.py" --model 'exec:env' --depth 1 --repairs 0
run grep -c "$key" <<<"$out"
ok "a command that is asked does not see it" 1 '^0$'
run grep -rlF "$key" "$work/runs"
ok "and it does not come back in a reply" 1 '^$'

# The warm server outlives the command that started it.
export CUTEGEN_RUNTIME=$work/rt2
run env OPENAI_API_KEY=$key "$program" run "$root/examples/swish.py" --depth 0 --no-report
ok "a run that starts a warm server" 0 '^best'
run cutegen server status --json
ok "leaves it there" 0 '"running": ?true'
out=$(python3 - "$key" <<'END'
import os, sys
seen = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if sys.argv[1].encode() in open("/proc/%s/environ" % pid, "rb").read() and "cutegen" in os.readlink("/proc/%s/exe" % pid):
            seen.append(open("/proc/%s/cmdline" % pid).read().replace("\0", " "))
    except OSError:
        pass
print("seen by", seen)
END
)
ok "no process that is left has the key in its environment" 0 '^seen by \[\]$'
cutegen server stop >/dev/null 2>&1
export CUTEGEN_RUNTIME=$work/rt

# ---- a call that is cut ------------------------------------------------------------------
setsid "$program" run "$root/examples/swish.py" --model 'exec:touch asked; sleep 3600' >cut.out 2>&1 &
pid=$!
until [ -e asked ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
kill -INT $pid
until grep -q 'Ctrl-C again' cut.out || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done # two at once are one signal
kill -INT $pid
wait $pid
code=$?
out=$(cat cut.out)
ok "Ctrl-C twice cuts a call at once" 130 'cutegen resume|interrupted'
run cutegen show last --json
ok "the cut call is recorded as interrupted" 0 '"finish_reason":"interrupted"'

# ---- budgets --------------------------------------------------------------------------------
run cutegen run "$root/examples/swish.py" --model replay:t.jsonl --depth 2 --budget-calls 3
ok "a spent budget ends a run with exit code 4" 4 'budget of 3 calls'
run cutegen resume last --budget-calls 5
ok "what was spent before counts when it goes on" 4 'budget of 5 calls'
out=$(cutegen show last --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["calls"]), "calls")')
ok "and no more calls were made than allowed" 4 '^5 calls$'

run cutegen resume last --no-report
ok "without a limit it comes to its end" 0 '^best +.*depth 2'
run cutegen resume last --json --no-report
ok "a run that is done can be resumed and tells its result from the store" 0 '"event":"result".*"parts":'

echo "1..$n"
exit $failed
