#!/usr/bin/env bash
# hopper.sh - the last steps of the sm_90a products, a row that a cluster shares, and one that the L2 cache is asked to
# keep pass simt's judge with every check; so do products some of whose rows the split would lose bits of.
#
#     tests/expert/hopper.sh LADDER CUTEGEN [all]         all: every step of the four ladders (SWEEP=gemm)
set -u
ladder=$(readlink -f "$1") cutegen=$(readlink -f "$2") all=${3:-}
root=$(dirname "$(readlink -f "$0")")/../..
work=$(mktemp -d)
trap '"$cutegen" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=$work/rt # a warm server of this test's own
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

cp "$root"/tests/expert/tasks/{big_matmul,divided_matmul,short_sum,big_half,small_half,half_gelu,long_softmax,wide_norm,thin_matmul,thin_half,thin_columns}.json .
sed 's/\<64\>/32/g; s/short_sum/one_sum/' short_sum.json >one_sum.json
sed 's/\<4096\>/512/g; s/big_matmul/small_result/' big_matmul.json >small_result.json
for task in big_matmul divided_matmul short_sum one_sum small_result big_half small_half half_gelu long_softmax wide_norm thin_matmul thin_half thin_columns; do
    CUTEGEN_HOME=$root "$ladder" "$task.json" . sm_90a >ladder.log || { cat ladder.log; exit 1; }
done
if [ -n "$all" ]; then
    for k in $(ls big_matmul.*.cu | sort -t. -k2n); do judge "$k" "$root/examples/matmul.py" M=140 K=320 N=260; done
    for k in $(ls big_half.*.cu | sort -t. -k2n); do judge "$k" narrow.py N=520; done
    for k in $(ls small_half.*.cu | sort -t. -k2n); do judge "$k" narrow.py N=520; done
    for k in $(ls half_gelu.*.cu | sort -t. -k2n); do judge "$k" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=520 FEATURES_OUT=776; done
    for k in $(ls long_softmax.*.cu | sort -t. -k2n); do judge "$k" "$root/examples/log_softmax.py" BATCH=2 DIM=131072; done
    exit $failed
fi
both=$(ls big_matmul.*.cu | sort -t. -k2n | tail -1)
before=$(ls big_matmul.*.cu | sort -t. -k2n | tail -2 | head -1)
short=$(ls short_sum.*.cu | sort -t. -k2n | tail -1)
lanes=$(ls half_gelu.*.cu | sort -t. -k2n | tail -3 | head -1) # stores by lanes, some of which have nothing to store
hold=$(ls half_gelu.*.cu | sort -t. -k2n | tail -1)
judge "$before" "$root/examples/matmul.py" M=140 K=520 N=300
judge "$both" "$root/examples/matmul.py" M=140 K=320 N=260
judge "$(ls divided_matmul.*.cu | sort -t. -k2n | tail -2 | head -1)" "$root/examples/matmul.py" M=140 K=1600 N=260
judge "$short" "$root/examples/transposed_both_matmul.py" M=140 K=40 N=776
judge "$before" guard.py M=140 K=520 N=300
judge "$short" guard_transposed.py M=140 K=40 N=776
judge "$(ls one_sum.*.cu | sort -t. -k2n | tail -1)" "$root/examples/transposed_both_matmul.py" M=140 K=32 N=776
judge "$lanes" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=136 FEATURES_OUT=776
judge "$hold" "$root/examples/half_linear_gelu.py" BATCH=300 FEATURES_IN=520 FEATURES_OUT=776
judge "$(ls small_half.*.cu | sort -t. -k2n | tail -1)" narrow.py N=328
processors=12
judge "$(ls small_result.*.cu | sort -t. -k2n | tail -1)" "$root/examples/matmul.py" M=140 K=520 N=260
# Few rows or columns: sizes that are no multiple of anything.
judge "$(ls thin_matmul.*.cu | sort -t. -k2n | tail -1)" "$root/examples/matmul.py" M=20 K=521 N=524
judge "$(ls thin_half.*.cu | sort -t. -k2n | tail -1)" "$root/examples/half_linear_gelu.py" BATCH=35 FEATURES_IN=520 FEATURES_OUT=523
judge "$(ls thin_columns.*.cu | sort -t. -k2n | tail -1)" "$root/examples/transposed_both_matmul.py" M=516 K=523 N=7
judge "$(ls long_softmax.*.cu | sort -t. -k2n | tail -1)" "$root/examples/log_softmax.py" BATCH=2 DIM=131072
judge "$(grep -l Retained wide_norm.*.cu | sort -t. -k2n | head -1)" "$root/examples/layer_norm.py" TOKENS=3
exit $failed
