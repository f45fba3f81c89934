#!/usr/bin/env bash
# hopper.sh - the last steps of the sm_90a products, a row that a cluster shares, and one that the L2 cache is asked to
# keep pass simt's judge with every check; so do products some of whose rows the split would lose bits of.
#
#     tests/expert/hopper.sh LADDER CUTEGEN [all]         all: more operands, every step of five ladders (SWEEP=gemm)
set -u
ladder=$(readlink -f "$1") cutegen=$(readlink -f "$2") all=${3:-}
root=$(dirname "$(readlink -f "$0")")/../..
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$cutegen" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
failed=0

cat >narrow.py <<'END'
import torch
import torch.nn as nn

N = 520


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B.transpose(0, 1))


def get_inputs():
    return [torch.rand(N, N, dtype=torch.float16), torch.rand(N, N, dtype=torch.float16)]


def get_init_inputs():
    return []
END

# Rows that are computed again: one is out of range, some have a single term; a strip of them all.
cat >guard.py <<'END'
import torch
import torch.nn as nn

M, K, N = 140, 40, 140


class Model(nn.Module):
    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)


def get_inputs():
    A = torch.rand(M, K)
    A[7, 5] = 1e30
    A[70:75] = 0
    A[70:75, :5] = torch.eye(5)
    A[128:, 3] = 1e30
    return [A, torch.rand(K, N)]


def get_init_inputs():
    return []
END
sed 's/matmul(A, B)/matmul(A.t(), B.t())/; s/return \[A, \(.*\)\]/return [A.t().contiguous(), \1.t().contiguous()]/' guard.py >guard_transposed.py

# judge KERNEL TASK SIZE...: products as for few processors, so that a block walks from tile to tile.
processors=2
judge()
{
    local kernel=few.$1 task=$2 sizes=()
    sed "s/call->device.sm_count/$processors/" "$1" >"$kernel"
    shift; shift
    for size; do sizes+=(--set "$size"); done
    if "$cutegen" eval "$task" "$kernel" --device simt --simt-arch 90a --draws 1 --no-scale "${sizes[@]}" >log 2>&1; then
        echo "pass  $(basename "$kernel")"
    else
        echo "FAIL  $(basename "$kernel")"
        head -20 log
        failed=1
    fi
}

tasks=(big_matmul half_gelu thin_matmul long_softmax wide_norm)
others=(divided_matmul short_sum big_half small_half thin_half thin_columns)
for task in "${tasks[@]}" ${all:+"${others[@]}"}; do cp "$root/tests/expert/tasks/$task.json" .; done
if [ -n "$all" ]; then
    sed 's/\<64\>/32/g; s/short_sum/one_sum/' short_sum.json >one_sum.json
    sed 's/\<4096\>/512/g; s/big_matmul/small_result/' big_matmul.json >small_result.json
    tasks+=("${others[@]}" one_sum small_result)
fi
for task in "${tasks[@]}"; do
    CUTEGEN_HOME=$root "$ladder" "$task.json" . sm_90a >ladder.log || { cat ladder.log; exit 1; }
done
# last TASK [N]: the last kernel of its ladder, or the Nth before it.
last() { ls "$1".*.cu | sort -t. -k2n | tail -$((${2:-0} + 1)) | head -1; }
ladder_of() { ls "$1".*.cu | sort -t. -k2n; }

# Without `all`: one kernel of each recipe. What a form does with other operands, and every step on the way, takes minutes.
judge "$(last big_matmul)" "$root/examples/matmul.py" M=140 K=320 N=260
judge "$(last half_gelu)" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=520 FEATURES_OUT=776
if [ -n "$all" ]; then
    judge "$(last short_sum)" guard_transposed.py M=140 K=40 N=776
    judge "$(last big_matmul 1)" guard.py M=140 K=520 N=300
    judge "$(last divided_matmul 1)" "$root/examples/matmul.py" M=140 K=1600 N=260
    judge "$(last big_matmul 1)" "$root/examples/matmul.py" M=140 K=520 N=300
    judge "$(last short_sum)" "$root/examples/transposed_both_matmul.py" M=140 K=40 N=776
    judge "$(last one_sum)" "$root/examples/transposed_both_matmul.py" M=140 K=32 N=776
    # stores by lanes, some of which have nothing to store
    judge "$(last half_gelu 2)" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=136 FEATURES_OUT=776
    judge "$(last small_half)" narrow.py N=328
fi
processors=12
[ -z "$all" ] || judge "$(last small_result)" "$root/examples/matmul.py" M=140 K=520 N=260
# Few rows or columns: sizes that are no multiple of anything.
judge "$(last thin_matmul)" "$root/examples/matmul.py" M=20 K=521 N=524
if [ -n "$all" ]; then
    judge "$(last thin_half)" "$root/examples/half_linear_gelu.py" BATCH=35 FEATURES_IN=520 FEATURES_OUT=523
    judge "$(last thin_columns)" "$root/examples/transposed_both_matmul.py" M=516 K=523 N=7
fi
judge "$(last long_softmax)" "$root/examples/log_softmax.py" BATCH=2 DIM=131072
judge "$(grep -l Retained wide_norm.*.cu | sort -t. -k2n | head -1)" "$root/examples/layer_norm.py" TOKENS=3
[ -n "$all" ] || exit $failed
processors=2
for k in $(ladder_of big_matmul); do judge "$k" "$root/examples/matmul.py" M=140 K=320 N=260; done
for k in $(ladder_of big_half) $(ladder_of small_half); do judge "$k" narrow.py N=520; done
for k in $(ladder_of half_gelu); do judge "$k" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=520 FEATURES_OUT=776; done
for k in $(ladder_of long_softmax); do judge "$k" "$root/examples/log_softmax.py" BATCH=2 DIM=131072; done
exit $failed
