#!/usr/bin/env bash
# coverage.sh - generated tasks through the built-in engineer and the judge: every one must pass.
#
#     tests/expert/coverage.sh BUILD_DIR [COUNT [SEED [EVERY]]]         EVERY 8: each eighth task
#
# The kernel at the end of the ladder is judged, on simt or on $DEVICE. Prints one line per task; exit 1: some failed.
set -u
build=$(cd "$1" && pwd)
count=${2:-160} seed=${3:-1} every=${4:-1}
home=$(cd "$(dirname "$0")/../.." && pwd)
cutegen=$build/src/cutegen
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_HOME=$home CUTEGEN_RUNS=$work/runs
python3 "$home/tests/expert/generate.py" "$work/tasks" "$count" "$seed"
failed=0
for ((i = ${START:-0}; i < count; i += every)); do
    name=$(printf 'task%03d' "$i")
    what=$(head -1 "$work/tasks/$name.py" | tr -d '"')
    if ! "$cutegen" describe "$work/tasks/$name.py" --device simt --no-scale --json >"$work/$name.json" 2>"$work/why"; then
        echo "$name: not described: $(head -1 "$work/why")"
        failed=$((failed + 1))
        continue
    fi
    "$build/tests/expert/expert_ladder" "$work/$name.json" "$work/kernels" >"$work/ladder" 2>&1
    kernel=$(find "$work/kernels" -name "$name.*.cu" 2>/dev/null | sort -t. -k2 -n | tail -1)
    if [ -z "$kernel" ]; then
        echo "$name: not written: $(tail -1 "$work/ladder")"
        failed=$((failed + 1))
        continue
    fi
    verdict=$("$cutegen" eval "$work/tasks/$name.py" "$kernel" --device "${DEVICE:-simt}" --no-scale 2>&1)
    if [ $? -eq 0 ]; then
        echo "$name: pass, $(basename "$kernel"), ${what#*: }"
    else
        echo "$name: FAILED, $(basename "$kernel"), $what"
        printf '%s\n' "$verdict" | head -20
        cp "$kernel" "$work/tasks/$name.py" "${KEEP:-/dev/null}" 2>/dev/null
        failed=$((failed + 1))
    fi
done
echo "$failed failed"
[ "$failed" -eq 0 ]
