#!/usr/bin/env bash
# tune_test.sh - tunables of a kernel are searched by the machine, by `cutegen tune` and after the last step of a run; the
# built-in engineer begins with what is predicted to be best, and its ladder is compiled ahead.
#
#     tests/e2e/tune_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
. "$root/tests/tap.sh"

cat >kernel.cu <<'END'
// swish with tunables: a thread takes VEC elements, a block has THREADS threads.
#include <cutegen/kernel.h>

CUTEGEN_TUNE(VEC, 1, 2, 4);
CUTEGEN_TUNE(THREADS, 32, 128, 256);
CUTEGEN_TUNE_IF(VEC * THREADS <= 512);

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void __launch_bounds__(THREADS) swish(float const *x, float *y, int64_t n)
{
    using namespace cute;
    Tensor vX = make_tensor(make_gmem_ptr(x), make_shape(Int<VEC>{}, n / VEC)); // (VEC,n/VEC)
    Tensor vY = make_tensor(make_gmem_ptr(y), make_shape(Int<VEC>{}, n / VEC)); // (VEC,n/VEC)
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;

    if (i < n / VEC) {
        Tensor r = make_tensor<float>(Int<VEC>{}); // (VEC)
        copy(AutoVectorizingCopyWithAssumedAlignment<32 * VEC>{}, vX(_, i), r);
        CUTE_UNROLL
        for (int k = 0; k < VEC; ++k)
            r(k) = r(k) / (1.0f + __expf(-r(k)));
        copy(AutoVectorizingCopyWithAssumedAlignment<32 * VEC>{}, r, vY(_, i));
    }
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int64_t n = cutegen_numel(x);

    CUTEGEN_REQUIRE(call, n % VEC == 0, "whole vectors");
    return CUTEGEN_LAUNCH(call, swish, cutegen_dim3(cutegen_ceil_div(n / VEC, THREADS), 1, 1),
                          cutegen_dim3(THREADS, 1, 1), 0, CUTEGEN_DATA(float const, x),
                          CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
END
task=$root/examples/swish.py
run "$program" tune "$task" kernel.cu --draws 1 --tune 4
ok "combinations are tried, nearest first" 0 'tune: VEC 2, THREADS 32'
ok "as many as were asked for, and the end says so" 0 'tuned: 4 of 8 combinations tried, 1 violate a condition'
ok "the best is faster" 0 'best +depth [1-9].*, [1-9][.0-9]*x over depth 0'
run "$program" show last --source
ok "its source has the chosen values first" 0 'CUTEGEN_TUNE\((VEC, 2, 1, 4|VEC, 4, 1, 2|THREADS, 128, 32, 256)\)'
best=$out
run "$program" export last --output out
out=$(find out -name '*.cu' -exec cat {} +)
ok "so has what is exported" 0 "$(grep -o 'CUTEGEN_TUNE(VEC, .*)' <<<"$best" | sed 's/[()]/\\&/g')"

# A model's kernel: one call, the search costs no more.
{ echo 'CHANGE: a kernel with tunables'; echo '```cuda'; cat kernel.cu; echo '```'; } >reply.md
printf '{"stage": "synthesize", "reply_file": "reply.md"}\n{"stage": "optimize", "reply": "STOP: done"}\n{"stage": "optimize", "reply": "STOP: done"}\n' >model.jsonl
run "$program" run "$task" --model replay:model.jsonl --draws 1 --tune 2
ok "a model's kernel is tuned after its last step" 0 'tuned: 2 of 8 combinations tried'
run "$program" run "$task" --model replay:model.jsonl --draws 1 --tune 0
ok "unless told not to" 0 'ended'
ok "then nothing is tuned" 0 '^run '
out=$(grep -c tuned <<<"$out")
ok "not even said" 0 '^0$'
sed 's/TUNE(VEC, 1, 2, 4)/TUNE(VEC, 1, N)/' kernel.cu >bad.cu
run "$program" tune "$task" bad.cu --draws 1
ok "a declaration that cannot be read is told" '*' 'not tuned: CUTEGEN_TUNE\(VEC, 1, N\)'
run "$program" tune "$task" nowhere.cu
ok "a file that is not there is wrong use" 2 'nowhere.cu'

run env XDG_CACHE_HOME="$work/cache" "$program" run "$task" --fresh --order predicted --ahead 2 --draws 1
ok "the built-in engineer begins with its prediction" 0 '^ *0  the pointwise kernel that is predic'
ok "tries neighbours" 0 'leave out: '
ok "and says why it ends" 0 'nothing untried is predicted to win'
run "$program" show last --json
out=$(python3 -c 'import json, sys
built = [a["cached"] for a in json.load(sys.stdin)["attempts"]]
print("ahead" if len(built) > 2 and not built[0] and all(built[1:]) else built)' <<<"$out")
ok "its neighbours were compiled ahead" 0 '^ahead$'
echo "1..$n"
exit $failed
