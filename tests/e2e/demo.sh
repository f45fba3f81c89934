#!/usr/bin/env bash
# demo.sh - what `make demo` shows: two tasks from PyTorch to a verified kernel, and their report.
set -euo pipefail
cd "$(dirname "$0")/../.."
cutegen=build/release/src/cutegen
[ -x $cutegen ] || cutegen=build/release/cutegen
export CUTEGEN_RUNS=${CUTEGEN_RUNS:-runs}

show()
{
    printf '\n$ cutegen %s\n' "$*"
    "$cutegen" "$@"
}

show doctor
show run examples/swish.py --fresh
show run examples/square_matmul.py --depth 3 --fresh
if compgen -G 'examples/replays/*.jsonl' >/dev/null; then
    echo
    echo "A recorded model: its first kernel does not compile, its second is wrong; small edits mend both."
    for transcript in examples/replays/*.jsonl; do
        task=examples/$(basename "$transcript" | sed 's/[-.].*//').py
        [ -f "$task" ] || task=examples/swish.py
        show run "$task" --model "replay:$transcript"
    done
fi
show runs
