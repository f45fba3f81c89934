#!/usr/bin/env bash
# coverage.sh - generated tasks through the built-in engineer and the judge: every one must pass.
#
#     tests/expert/coverage.sh BUILD_DIR [COUNT [SEED [EVERY]]]         EVERY 8: each eighth task
#
# The kernel at the end of the ladder is judged, on simt or on $DEVICE. Prints one line per task; exit 1: some failed.
# ARCH: the ladder of that device (sm_90a); SIMT_ARCH: what simt is then (90a); START: the first of them; JOBS: so many at a time; KEEP: a folder for
# what failed; KERNELS: a folder for the kernels; one that is there already is judged as it is; CUTEGEN, LADDER,
# CUTEGEN_HOME: an installed cutegen, expert_ladder and the folder of its recipes instead of BUILD_DIR's; GENERATE:
# another program that writes tasks (modules.py); SIMT_ARCH: what simt is then (90a); BASELINE: strict; SKIP: how the changes of
# steps begin that are passed over ("split A and B;divide K").
set -u
build=$(cd "$1" && pwd)
count=${2:-208} seed=${3:-1} every=${4:-1}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
export CUTEGEN_HOME=${CUTEGEN_HOME:-$(cd "$here/../.." && pwd)} CUTEGEN_RUNS=$work/runs
export CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-${CUTEGEN_RUNTIME:-$work/rt}} CUTEGEN_SERVER=yes # builder and oracle stay warm
export cutegen=${CUTEGEN:-$build/src/cutegen} ladder=${LADDER:-$build/tests/expert/expert_ladder} work
export kernels=${KERNELS:-$work/kernels}

# stop_servers: those of this run.
stop_servers() {
    local runtime
    for runtime in "$work"/rt*; do
        [ ! -d "$runtime" ] || CUTEGEN_RUNTIME=$runtime "$cutegen" server stop >/dev/null 2>&1
    done
}
trap 'stop_servers; rm -rf "$work"' EXIT

one() {
    local name kernel what verdict skip
    IFS=';' read -ra skip <<<"${SKIP:-}"
    [ "${JOBS:-1}" -le 3 ] || export CUTEGEN_RUNTIME=$work/rt-$SLOT # a server has few of each kind to lend
    name=$(printf 'task%03d' "$1")
    what=$(head -1 "$work/tasks/$name.py" | tr -d '"')
    if [ -z "$(find "$kernels" -name "$name.*.cu" 2>/dev/null)" ]; then
        if ! "$cutegen" describe "$work/tasks/$name.py" --device simt --no-scale ${BASELINE:+--baseline "$BASELINE"} --json >"$work/$name.json" 2>"$work/$name.why"; then
            echo "$name: FAILED, not described: $(head -1 "$work/$name.why")"
            return
        fi
        "$ladder" "$work/$name.json" "$kernels" ${ARCH:-} "${skip[@]}" >"$work/$name.ladder" 2>&1
    fi
    kernel=$(find "$kernels" -name "$name.*.cu" 2>/dev/null | sort -t. -k2 -n | tail -1)
    if [ -z "$kernel" ]; then
        echo "$name: FAILED, not written: $(tail -1 "$work/$name.ladder")"
    elif verdict=$("$cutegen" eval "$work/tasks/$name.py" "$kernel" --device "${DEVICE:-simt}" --no-scale ${SIMT_ARCH:+--simt-arch "$SIMT_ARCH"} \
        ${BASELINE:+--baseline "$BASELINE"} 2>&1); then
        echo "$name: pass, $(basename "$kernel"), ${what#*: }"
    else
        echo "$name: FAILED, $(basename "$kernel"), $what"$'\n'"$(printf '%s\n' "$verdict" | head -20)"
        cp "$kernel" "$work/tasks/$name.py" "${KEEP:-/dev/null}" 2>/dev/null
    fi
}
export -f one

python3 "${GENERATE:-$here/generate.py}" "$work/tasks" "$count" "$seed"
seq "${START:-0}" "$every" $((count - 1)) | xargs --process-slot-var=SLOT -P "${JOBS:-1}" -I{} bash -c 'one {}' | tee "$work/lines"
passed=$(grep -c ': pass, ' "$work/lines") failed=$(grep -c ': FAILED, ' "$work/lines")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
