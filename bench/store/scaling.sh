#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scaling.sh CUTEGEN [TASKS|each:N|auto:SECONDS [WORKERS...]] - one suite of compile and judge jobs on simt by 1, 2, 4, 8, 16 workers.
#
# A worker stands for a machine with one core: it is pinned to a core of its own and has its own warm server and kernel
# cache. All of them share a PostgreSQL server. The workers are started, and their builders warm, before the clock starts,
# as on a cluster that has worked for a minute; the clock runs from `cutegen suite` to its last line. Every round has its
# own tasks: nothing is in a cache. auto:SECONDS takes as many tasks as one worker does in that time; each:N takes N for
# each worker, where a suite of the same size for all would take one worker too long: speedup is then of tasks per second.
#
# Runs on a machine without Debian's packages too: PG_BIN names a folder with PostgreSQL's programs (carried along with
# their lib and share folders); libpq.so.5 must be found (LD_LIBRARY_PATH).
#
# Prints one line for each round (bench/store/scaling.md keeps them), and what bounds it:
#     busy      of the workers' time was spent on tasks; the rest waited for the queue, for the last task, for the page
#     task      seconds that a task took, in the middle; growth with workers is the machine's (shared caches, two threads
#               to a core, clocks), not the queue's
#     machine   the efficiency of as many compilers (gcc -O2) without any cutegen, where there is one (not with NO_GCC=1)
#     cores     that were busy meanwhile; many more than workers: somebody else used the machine, and the figures are not good
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "scaling.sh CUTEGEN [TASKS|each:N|auto:SECONDS [WORKERS...]]" >&2; exit 2; }
cutegen=$(realpath "$1")
tasks=${2:-auto:100}
shift
[ $# = 0 ] || shift
workers=${*:-1 2 4 8 16}
depth=${DEPTH:-1}
if [ -z "${CUTEGEN_TEST_STORE:-}" ]; then # first: a server of our own, then ourselves beside it
    [ -z "${PG_BIN:-}" ] || PATH=$PG_BIN:$PATH
    exec env PATH="$PATH" "$here/../../tests/store/postgres.sh" "$0" "$cutegen" "$tasks" $workers
fi
top=$(mktemp -d)
pids=
stop_workers()
{
    for pid in $pids; do kill "$pid" 2>/dev/null || true; done
    for pid in $pids; do wait "$pid" 2>/dev/null || true; done
    pids=
}
finish()
{
    stop_workers
    for dir in "$top"/machine*; do
        [ ! -d "$dir" ] || XDG_RUNTIME_DIR=$dir/run "$cutegen" server stop >/dev/null 2>&1 || true
    done
    rm -rf "$top"
}
trap finish EXIT
trap 'exit 130' INT TERM

now() { date +%s.%N; }
since() { echo "$(now) $1" | awk '{ printf "%.2f", $1 - $2 }'; }

# The n-th core that we may use.
core()
{
    awk -v n="$1" '/^Cpus_allowed_list/ { k = split($2, part, ",")
        for (i = 1; i <= k; i++) { split(part[i], ab, "-"); if (ab[2] == "") ab[2] = ab[1]
            for (c = ab[1] + 0; c <= ab[2] + 0; c++) all[++m] = c } print all[(n - 1) % m + 1] }' /proc/self/status
}

# machine N: the words that run a command on the N-th machine.
machine()
{
    mkdir -p "$top/machine$1/run" "$top/machine$1/cache"
    chmod 700 "$top/machine$1/run"
    echo "env XDG_RUNTIME_DIR=$top/machine$1/run XDG_CACHE_HOME=$top/machine$1/cache CUTEGEN_RUNS=$top/machine$1/runs" \
        "taskset -c $(core "$1")"
}

# task FILE K: equal work for every K, other code.
task()
{
    cat >"$1" <<TASK
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(torch.tanh(x * $2.0) + $2.0, dim=-1)

def get_inputs():
    return [torch.randn(128, 512)]

def get_init_inputs():
    return []
TASK
}

export CUTEGEN_DEVICE=simt XDG_CONFIG_HOME="$top" CUTEGEN_LOG=
most=$(echo "$workers" | tr ' ' '\n' | sort -n | tail -1)
echo "# $(nproc) cores$(lscpu 2>/dev/null | sed -n 's/^Thread(s) per core: */, threads per core: /p;s/^Model name: */, /p' | tr -d '\n')"

# ---- machines that have worked before -----------------------------------------------

# The first task of a machine precompiles CuTe. Oracles are not kept: each is confined to its task.
warm()
{
    task "$top/warm$1/1.py" "$((90000 + $1))"
    $(machine "$1") "$cutegen" run "$top/warm$1/1.py" --depth "$depth" --quiet >/dev/null
}
began=$(now)
for i in $(seq "$most"); do
    mkdir -p "$top/warm$i"
    [ "$i" = 1 ] || warm "$i" &
done
warm 1
wait
warmed=$(since "$began")
case $tasks in
auto:*) # a multiple of the workers: the last round of tasks is as full as the others
    task "$top/warm1/9.py" 99999
    alone=$(now)
    $(machine 1) "$cutegen" run "$top/warm1/9.py" --depth "$depth" --quiet >/dev/null
    tasks=$(echo "${tasks#auto:} $(since "$alone") $most" |
        awk '{ n = int($1 / $2 / $3) * $3; if (n < $3) n = $3; if (n > 10 * $3) n = 10 * $3; print n }') ;;
esac
echo "# $tasks tasks of $depth optimisation steps; $most machines were warm after $warmed s"

# ---- what the machine itself loses ----------------------------------------------------

{ echo '#include <math.h>'; for i in $(seq 60); do
    echo "double f$i(const double *a, int n) { double s = $i; for (int i = 0; i < n; i++) for (int j = 0; j < i % 7; j++) s += sin(a[i] * j + s) * a[j]; return s; }"
done; } >"$top/unit.c"
compile_alone() { taskset -c "$(core "$1")" gcc -O2 -w -c "$top/unit.c" -o "$top/unit$1.o"; }
hardware() # seconds of one compile on each of N cores at once, twice
{
    began=$(now)
    for i in $(seq "$1"); do
        (compile_alone "$i"; compile_alone "$i") &
    done
    wait
    since "$began"
}
one=
[ -n "${NO_GCC:-}" ] || ! command -v gcc >/dev/null || { hardware 1 >/dev/null; one=$(hardware 1); } # the first one is cold

# ---- rounds ---------------------------------------------------------------------------

# Ticks that all cores of the machine were busy, ours and others'.
ticks() { awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

echo "workers seconds speedup efficiency   busy   task  machine  cores"
first=
round=0
for n in $workers; do
    round=$((round + 1))
    count=$tasks
    [ "${tasks#each:}" = "$tasks" ] || count=$((${tasks#each:} * n))
    mkdir -p "$top/tasks$round"
    for i in $(seq "$count"); do
        task "$top/tasks$round/${i}_task.py" "$((1000 * round + i))"
    done
    for i in $(seq "$n"); do
        $(machine "$i") "$cutegen" worker --store "$CUTEGEN_TEST_STORE" --tasks "$top/tasks$round" --quiet \
            >"$top/worker$i.log" 2>&1 &
        pids="$pids $!"
    done
    until [ "$("$cutegen" top --json --store "$CUTEGEN_TEST_STORE" 2>/dev/null | tr ',' '\n' | grep -c '"pid"')" -ge "$n" ]; do
        sleep 0.2
    done
    began=$(now)
    before=$(ticks)
    CUTEGEN_RUNS=$top/runs "$cutegen" suite "$top/tasks$round" --depth "$depth" --workers none \
        --store "$CUTEGEN_TEST_STORE" --json >"$top/out$n" || { tail -3 "$top/out$n"; tail -3 "$top"/worker*.log; exit 1; }
    took=$(since "$began")
    cores=$(echo "$(ticks) $before $took $(getconf CLK_TCK)" | awk '{ printf "%.1f", ($1 - $2) / $3 / $4 }')
    stop_workers
    [ -n "$first" ] || first=$(echo "$took $n $count" | awk '{ print $1 * $2 / $3 }') # one worker's seconds for a task
    gcc=-
    [ -z "$one" ] || gcc=$(echo "$one $(hardware "$n")" | awk '{ printf "%.2f", $1 / $2 }')
    csv=$(sed -n 's/.*"csv": *"\([^"]*\)".*/\1/p' "$top/out$n" | tail -1)
    awk -F, 'NR > 1 && $10 > 0 { print $17 }' "$csv" | sort -n >"$top/walls" # tasks with a time of their kernel
    [ "$(wc -l <"$top/walls")" = "$count" ] || { echo "scaling.sh: not all tasks ended:" >&2; tail -3 "$top/out$n" >&2; exit 1; }
    awk -v n="$n" -v took="$took" -v first="$(echo "$first $count" | awk '{ print $1 * $2 }')" -v gcc="$gcc" -v cores="$cores" '
        { sum += $1; all[NR] = $1 }
        END { printf "%7d %7.1f %7.2f %10.2f %5.0f%% %6.2f  %7s  %5s\n", n, took, first / took, first / took / n,
                     100 * sum / n / took, all[int((NR + 1) / 2)], gcc, cores }' "$top/walls"
done
