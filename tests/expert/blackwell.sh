#!/usr/bin/env bash
# blackwell.sh - the 16-bit product for sm_100a (tcgen05, TMA, sums in tensor memory) passes simt's judge with every
# check, as a B200.
#
#     tests/expert/blackwell.sh LADDER CUTEGEN [all]
#
# One form is judged: pairs of blocks, stores by TMA. all: every step of the ladder, in fp16 and bf16, operands along m
# and n, batches.
set -u
ladder=$(readlink -f "$1") cutegen=$(readlink -f "$2") all=${3:-}
root=$(dirname "$(readlink -f "$0")")/../..
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$cutegen" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
failed=0

# task NAME DTYPE A B PRODUCT: shapes of A and B
task()
{
    cat >"$1.py" <<PY
import torch
import torch.nn as nn

M, N, K = 300, 520, 136


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return $5


def get_inputs():
    return [torch.rand($3, dtype=torch.$2), torch.rand($4, dtype=torch.$2)]


def get_init_inputs():
    return []
PY
}

# judge KERNEL TASK SIZE...: as for three processors, so that a block walks from tile to tile.
judge()
{
    local kernel=few.$1 task=$2 sizes=()
    sed "s/call->device.sm_count/3/" "$1" >"$kernel"
    shift; shift
    for size; do sizes+=(--set "$size"); done
    if "$cutegen" eval "$task" "$kernel" --device simt --simt-arch 100a --simt-as b200 --draws 1 --no-scale "${sizes[@]}" >log 2>&1 &&
        grep -q 'modelled, unvalidated for B200' log; then
        echo "pass  $kernel $(basename "$task")"
    else
        echo "FAIL  $kernel $(basename "$task")"
        head -20 log
        failed=1
    fi
}

# steps TASK: its kernels, in order
steps()
{
    CUTEGEN_HOME=$root "$ladder" "$1.json" . sm_100a >ladder.log || { cat ladder.log; exit 1; }
    ls "$1".*.cu | sort -t. -k2n
}

cp "$root"/tests/expert/tasks/{big_half,small_half,half_gelu}.json .
gelu=(BATCH=300 FEATURES_IN=136 FEATURES_OUT=264)
judge "$(steps half_gelu | tail -1)" "$root/examples/half_linear_gelu.py" "${gelu[@]}"
[ -n "$all" ] || exit $failed

task nt float16 "M, K" "N, K" "torch.matmul(A, B.transpose(0, 1))"
for name in big_half small_half; do
    for k in $(steps $name | tail -n +2); do judge "$k" nt.py; done
done
for k in $(steps half_gelu | tail -n +2 | head -n -1); do judge "$k" "$root/examples/half_linear_gelu.py" "${gelu[@]}"; done

# What the engineer writes for other operands: described by the oracle, the best form judged as it is.
others="half_tn batch"
if "$root/tests/torch_at_least.sh" 2.0 2>/dev/null; then
    task bf_nn bfloat16 "M, K" "K, N" "torch.matmul(A, B)"
    others="$others bf_nn"
else
    echo "skip  run bf_nn: needs torch 2.0 or newer" # an older one's product of bfloat16 is not the same twice
fi
task half_tn float16 "K, M" "K, N" "torch.matmul(A.transpose(0, 1), B)"
task batch float16 "2, M, K" "2, K, N" "torch.bmm(A, B)"
for name in $others; do
    if "$cutegen" run $name.py --model builtin --device simt --simt-arch 100a --simt-as b200 --no-scale --draws 1 --depth 8 \
        --runs "$work/runs" --set M=304 --set N=520 --set K=520 >log 2>&1 &&
        "$cutegen" show last --runs "$work/runs" --source | grep -q SM100_MMA_F16BF16; then
        echo "pass  run $name"
    else
        echo "FAIL  run $name"
        tail -20 log
        failed=1
    fi
done
exit $failed
