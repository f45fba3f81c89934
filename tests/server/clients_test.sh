#!/usr/bin/env bash
# clients_test.sh - four clients, mixed candidates, one server on simt; then kills in mid-job.
#
#     tests/server/clients_test.sh PATH-TO-CUTEGEN
#
# $CUTEGEN_TEST_CANDIDATES (100) candidates are shared out. Every verdict must be the right one, nothing may be left
# running, and what waits in the server stays within its bounds.
set -u
program=$(readlink -f "$1")
total=${CUTEGEN_TEST_CANDIDATES:-100}
work=$(mktemp -d /tmp/cutegen-clients-XXXXXX)
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=$work/rt CUTEGEN_CACHE=$work/cache TMPDIR=$work/tmp XDG_CONFIG_HOME=$work/config
export CUTEGEN_DEVICE=simt CUTEGEN_DRAWS=2 CUTEGEN_RUN_DEADLINE=3600 OMP_NUM_THREADS=1
mkdir -p "$work/tmp"
cd "$work" || exit 3
n=0
failed=0

ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
    else
        echo "not ok $n - $1"
        failed=1
    fi
}

# All processes that belong to this test: everything started here inherits $work in its environment.
ours() { grep -la -- "$work" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/\([0-9]*\)/.*|\1|' | grep -vx "$$"; }
helpers() { for pid in $(ours); do grep -sqE '^(cutegen-(builder|runner|server|planner)|python)' "/proc/$pid/comm" && echo "$pid"; done; }
# Waits until the command after it succeeds; two minutes and more without that mean that something is broken.
soon() { for _ in $(seq 6000); do "$@" && return 0; sleep 0.2; done; return 1; }
no_helpers() { [ -z "$(helpers)" ]; }
server_pid() { "$program" server status --json | sed -n 's/.*"pid":\([0-9]*\),"version".*/\1/p'; }
status() { "$program" server status --json; }
none_lent() { ! status | grep -q '"state":"lent"'; }
# pids KIND STATE : of the server's processes
pids()
{
    status | python3 -c '
import json, sys
for p in json.load(sys.stdin).get("processes", []):
    if (p["kind"], p["state"]) == tuple(sys.argv[1:]):
        print(p["pid"])' "$@"
}

cat >task.py <<'END'
import torch

N = 4096


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2.0


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
END

# kernel NAME BODY [PLAN]
kernel()
{
    cat >"$1.cu" <<END
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>
using namespace cute;
__global__ void twice(float const *px, float *py, int n)
{
    Tensor x = make_tensor(make_gmem_ptr(px), make_shape(n)); // (n)
    Tensor y = make_tensor(make_gmem_ptr(py), make_shape(n)); // (n)
    int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    $2
}
#endif
#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0], *y = &call->out[0];
    int n = (int)cutegen_numel(x);
    ${3:-}
    return CUTEGEN_LAUNCH(call, (twice), cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), cutegen_dim3(256, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, y), n);
}
#endif
END
}
good='if (i < n) y(i) = 2.0f * x(i);'
kernel good "$good"
kernel wrong 'if (i < n) y(i) = 3.0f * x(i);'
kernel half 'if (i < n / 2) y(i) = 2.0f * x(i);'
kernel beyond 'if (i < n) y(i) = x(i) + x(i + (1 << 20));'
kernel trap 'if (i < n) y(i) = 2.0f * x(i); if (i == 7) asm volatile("trap;");'
kernel hang 'while (*(volatile float const *)px >= 0.0f) { } y(i) = x(i);'
kernel broken 'if (i < n) y(i) = 2.0f * z(i);'
kernel plan "$good" '*(volatile int *)8 = 1;'
declare -A wanted=([good]="pass" [wrong]="wrong values" [half]="not written" [beyond]="unsafe memory" [trap]="crash"
                   [hang]="hang" [broken]="compile error" [plan]="bad plan")
mix=(good wrong trap good half broken good beyond plan good wrong good)

# client NUMBER : its share, one after the other; prints what was not as it should be.
client()
{
    local i kind said deadline
    for ((i = $1; i < total; i += 4)); do
        kind=${mix[i % ${#mix[@]}]}
        [ $((i % 17)) = 5 ] && kind=hang
        # Only what never ends may meet its deadline, on a busy machine too.
        [ $kind = hang ] && deadline=3 || deadline=3600
        said=$("$program" eval task.py $kind.cu --runs "runs-$1" --json --run-deadline $deadline 2>>"err-$1" |
            sed -n 's/^{"verdict":"\([^"]*\)".*/\1/p')
        [ "$said" = "${wanted[$kind]}" ] || echo "$kind: '$said', not '${wanted[$kind]}'"
    done
}

"$program" eval task.py good.cu >first 2>&1
ok "a first candidate passes and starts the server" $?
first_server=$(server_pid)
for c in 0 1 2 3; do client $c >"wrong-$c" & done
wait
cat wrong-* | sed 's/^/# /'
[ -z "$(cat wrong-*)" ]
ok "$total candidates of four clients: every verdict is right" $?
[ -n "$first_server" ] && [ "$(server_pid)" = "$first_server" ]
ok "one server did it all" $?
soon none_lent
ok "everything lent came back, or was ended" $?
# At most so many of each kind wait.
few_wait()
{
    local kind
    for kind in builder=4 oracle=3 copier=1 runner=4; do
        [ "$(pids ${kind%=*} waiting | wc -l)" -le ${kind#*=} ] || return 1
    done
}
soon few_wait
ok "no more wait than may" $?
status | python3 -c '
import json, sys
s = json.load(sys.stdin)
held = sum(p["resident_mib"] for p in s["processes"] if p["state"] == "waiting")
print("#", held, "MiB held of", s["memory_mib"])
sys.exit(held > s["memory_mib"])'
ok "the memory of what waits is bounded" $?
left=$(find "$work/tmp" -mindepth 1 -maxdepth 1 ! -name 'cutegen-tmp-*') # those are the builders' own, while they live
[ -z "$left" ] || echo "# $left"
[ -z "$left" ]
ok "no job left a folder behind" $?

# ---- kills ---------------------------------------------------------------------
#
# The moment of a kill is not timed but made: a warm process that is stopped (SIGSTOP) is lent as any other and
# never answers, so its borrower stays where it is until somebody dies.

# hold KIND : stops those of the server's processes that wait for a borrower
hold()
{
    held=$(pids "$1" waiting)
    for pid in $held; do kill -STOP "$pid"; done
    [ -n "$held" ]
}
# held_is_lent KIND : sets $lent
held_is_lent() { for lent in $(pids "$1" lent); do grep -qx "$lent" <<<"$held" && return 0; done; return 1; }
ended() { ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$1/status"; }
# Processes started by $1, and by those.
below()
{
    local pid
    for pid in $(sed -n "s|^/proc/\([0-9]*\)/status:PPid:[[:space:]]*$1\$|\1|p" \
        <(grep -H ^PPid: /proc/[0-9]*/status 2>/dev/null)); do
        echo "$pid"
        below "$pid"
    done
}
runner_of() { for pid in $(below "$1"); do grep -qsx cutegen-runner "/proc/$pid/comm" && echo "$pid" && return 0; done; return 1; }
kill_server() { pid=$(server_pid) && kill -9 "$pid" && soon ended "$pid"; }
verdict() { sed -n 's/^{"verdict":"\([^"]*\)".*/\1/p' "$1"; }
# start NAME : judges a kernel of that name which was not built before; sets $client
start()
{
    count=$((${count:-0} + 1))
    { cat "$1.cu"; echo "// $count"; } >"new-$count.cu"
    "$program" eval task.py "new-$count.cu" --runs runs-k --json >killed 2>err-k &
    client=$!
}

"$program" eval task.py good.cu >/dev/null 2>&1 # leaves a builder and an oracle that wait
hold oracle && start good && soon held_is_lent oracle
ok "a client waits for an oracle that does not answer" $?
kill -9 $client
wait $client 2>/dev/null
soon none_lent && soon ended "$lent"
ok "a client that is killed frees what it held" $?
for pid in $held; do kill -CONT "$pid" 2>/dev/null; done

"$program" eval task.py good.cu >/dev/null 2>&1
hold oracle && start good && soon held_is_lent oracle && kill_server
ok "the server is killed while a client waits for its oracle" $?
wait $client
[ "$(verdict killed)" = pass ]
ok "the client still gives the right verdict" $?
grep -q 'going on without it' err-k
ok "and says so" $?

"$program" eval task.py good.cu >/dev/null 2>&1
hold builder && start wrong && soon held_is_lent builder && kill_server
ok "the server is killed while a client waits for its builder" $?
wait $client
[ "$(verdict killed)" = "wrong values" ]
ok "that client, too, gives the right verdict" $?
grep -q 'building without it' err-k && grep -q 'going on without it' err-k
ok "and says so, of the builder and of the oracle" $?

"$program" eval task.py good.cu >/dev/null 2>&1
start hang && soon runner_of $client >runner && kill_server
ok "the server is killed while a candidate runs" $?
kill -9 "$(cat runner)"
wait $client
[ "$(verdict killed)" = crash ]
ok "the run goes on until its own process dies" $?

"$program" server stop >/dev/null
soon no_helpers
ok "nothing is left running" $?
soon sh -c "[ -z \"\$(find '$work/tmp' -name 'cutegen-tmp-*')\" ]"
ok "nor any builder's folder" $?
helpers | while read -r pid; do echo "# $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"; done

echo "1..$n"
for pid in $(helpers); do kill -9 "$pid" 2>/dev/null; done
rm -rf "$work"
exit $failed
