#!/usr/bin/env bash
# layers.sh - judges and exports the layers of a small network, each with its backward (train.py).
#
#     tests/export/layers.sh PATH-TO-CUTEGEN FOLDER ROWS INPUTS WIDTH CLASSES [NAME...]
#
# The tasks are those of tests/expert/backward without their BACKWARD = True, with these sizes. CUTEGEN_DEVICE is the device.
# BUILD=for:H200 only compiles their kernels (bench/gpu/ships.sh).
set -u
program=$1 out=$2 rows=$3 inputs=$4 width=$5 classes=$6
shift 6
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out/tasks"
failed=0

# layer NAME TASK CONSTANT=VALUE... : forward and backward, as one export
layer()
{
    local name=$1 task=$2 edits=(-e /^BACKWARD/d) id of=()
    shift 2
    for value in "$@"; do edits+=(-e "s/^${value%=*} = .*/${value%=*} = ${value#*=}/"); done
    sed "${edits[@]}" "$here/../expert/backward/$task.py" >"$out/tasks/$name.py"
    for kind in --no-backward --backward; do
        if [ "${BUILD:-}" ]; then
            "$program" build "$out/tasks/$name.py" $kind --device "$BUILD" --depth 0
            continue
        fi
        id=$("$program" run "$out/tasks/$name.py" $kind --depth 0 --ahead 2 -v --no-report --compile none 2>"$out/tasks/$name$kind.log" |
            sed -n 's/^run  *//p')
        of+=("$id")
    done
    [ "${BUILD:-}" ] && return
    if ! "$program" export "${of[0]}" --gradients "${of[1]}" --output "$out/$name" 2>&1 | tail -2; then
        tail -qn 3 "$out/tasks/$name"*.log
        return 1
    fi
}

for name in "${@:-linear1 norm gelu linear2 loss}"; do
    for one in $name; do
        case $one in
        linear1) layer linear1 linear ROWS="$rows" COLUMNS="$inputs" WIDTH="$width" ;;
        norm) layer norm affine_norm ROWS="$rows" COLUMNS="$width" ;;
        gelu) layer gelu gelu ROWS="$rows" COLUMNS="$width" ;;
        linear2) layer linear2 linear ROWS="$rows" COLUMNS="$width" WIDTH="$classes" ;;
        loss) layer loss cross_entropy ROWS="$rows" COLUMNS="$classes" ;;
        esac &
    done
done
for job in $(jobs -p); do wait "$job" || failed=1; done
exit $failed
