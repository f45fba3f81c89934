#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# scaling.sh CUTEGEN [TASKS [WORKERS...]] - one suite of compile and judge jobs on simt by 1, 2, 4, 8, 16 workers.
#
# Runs on a machine without Debian's packages too: PG_BIN names a folder with PostgreSQL's programs (carried along with
# their lib and share folders); libpq.so.5 must be found (LD_LIBRARY_PATH). Every round begins with an empty kernel cache.
# Prints WORKERS SECONDS SPEEDUP EFFICIENCY, one line each; the result is bench/store/scaling.md's table.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { echo "scaling.sh CUTEGEN [TASKS [WORKERS...]]" >&2; exit 2; }
cutegen=$(realpath "$1")
tasks=${2:-48}
shift
[ $# = 0 ] || shift
workers=${*:-1 2 4 8 16}
if [ -z "${CUTEGEN_TEST_STORE:-}" ]; then # first: a server of our own, then ourselves beside it
    [ -z "${PG_BIN:-}" ] || PATH=$PG_BIN:$PATH
    exec env PATH="$PATH" "$here/../../tests/store/postgres.sh" "$0" "$cutegen" "$tasks" $workers
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM
mkdir "$top/tasks"
i=0
while [ $i -lt "$tasks" ]; do
    i=$((i + 1))
    cat >"$top/tasks/${i}_task.py" <<TASK
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(torch.tanh(x * $i) + $i, dim=-1)

def get_inputs():
    return [torch.randn($((64 + i)), 512)]

def get_init_inputs():
    return []
TASK
done
CUTEGEN_DEVICE=simt XDG_CONFIG_HOME=$top CUTEGEN_RUNS=$top/runs
export CUTEGEN_DEVICE XDG_CONFIG_HOME CUTEGEN_RUNS
echo "# $(nproc) cores, $tasks tasks"
echo "workers seconds speedup efficiency"
first=
for n in $workers; do
    XDG_CACHE_HOME=$top/cache-$n
    export XDG_CACHE_HOME
    "$cutegen" server stop >/dev/null 2>&1 || true
    began=$(date +%s.%N)
    "$cutegen" suite "$top/tasks" --depth 2 --workers "local:$n" --store "$CUTEGEN_TEST_STORE" --quiet >"$top/out"
    took=$(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }')
    [ -n "$first" ] || first=$(echo "$took $n" | awk '{ print $1 * $2 }')
    echo "$n $took $first" | awk '{ printf "%7d %7.1f %7.2f %10.2f\n", $1, $2, $3 / $2, $3 / $2 / $1 }'
done
