#!/usr/bin/env bash
# run_choices_test.sh - what a run may be told: when the profile is read, how wide to search, where to begin, in which language.
#
#     tests/e2e/run_choices_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_DEVICE=simt CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
. "$root/tests/tap.sh"

cutegen() { "$program" "$@"; }

# The depths before which $out, a run's events, has a profile.
profiled()
{
    python3 -c 'import json, sys
depth, seen = -1, []
for line in sys.stdin:
    e = json.loads(line)
    if e.get("event") == "depth": depth = e["depth"]
    if e.get("event") == "stage" and e.get("text") == "profile": seen.append(depth + 1)
print("profiled for depths", seen)' <<<"$out"
}

# ---- the profile is taken when it is read -------------------------------------------
steps=replay:$root/examples/replays/steps/swish.jsonl
for from in 1 2 9; do
    run cutegen run "$root/examples/swish.py" --model "$steps" --advance last --depth 2 --profile-from $from --json --no-report
    out=$(profiled)
    case $from in 1) want='\[1, 2\]' ;; 2) want='\[2\]' ;; 9) want='\[\]' ;; esac
    ok "with --profile-from $from no profile is taken before its depth" 0 "^profiled for depths $want\$"
done
cutegen show last --source >first.cu
# A product gets structure first: of four depths the first without a profile, the others with one.
cat >product.jsonl <<END
{"stage": "synthesize", "reply_file": "$root/examples/replays/steps/square_matmul/00-synthesize.md"}
{"stage": "optimize", "reply_file": "$root/examples/replays/steps/square_matmul/01-optimize.md"}
{"stage": "optimize", "reply_file": "$root/examples/replays/steps/square_matmul/02-optimize.md"}
END
run cutegen run "$root/examples/square_matmul.py" --model replay:product.jsonl --depth 4 --set N=128 --json --no-report
out=$(profiled)
ok "the profile of a product comes after half of the depths" 0 '^profiled for depths \[2'
run cutegen show last --calls
ok "a profile on simt names the bound, its fix and the worst lines" 0 'time by resource   .* us \([0-9]+ %\)'
ok "... what would be left without the bound" 0 'if that were fixed [0-9.]+ us \(-[0-9]+ %\), then bound by'
ok "... and the source line that uses most of it" 0 'worst lines +candidate.cu:[0-9]+, [0-9]+ % of the'
run cutegen run "$root/examples/swish.py" --model "$steps" --advance last --depth 2 --profile-from 1 --quiet --no-report
ok "quiet is quiet until the result" 0 '^best'
run cutegen report last "$(cutegen runs --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][1]["run"])')" --output both.html
ok "two profile schedules share a page" 0 'both\.html'

# ---- width, seed, target --------------------------------------------------------------
cat >twice.jsonl <<END
{"stage": "synthesize", "reply_file": "$root/examples/replays/steps/swish/00-synthesize.md"}
{"stage": "optimize", "reply_file": "$root/examples/replays/steps/swish/01-optimize.md"}
{"stage": "optimize", "reply_file": "$root/examples/replays/steps/swish/01-optimize.md"}
END
run cutegen run "$root/examples/swish.py" --model replay:twice.jsonl --depth 1 --width 2 --json
ok "two candidates are tried per step" 0 '"depth":1.*'
out=$(grep -c '"event":"attempt"' <<<"$out")
ok "and both are judged" 0 '^3$'
run cutegen run "$root/examples/swish.py" --model "exec:printf 'I would leave it as it is.'" --seed builtin --depth 1 --repairs 0
ok "a model starts from the built-in engineer's best kernel" 0 '^best +.*depth 0'
run cutegen run "$root/examples/swish.py" --target cuda
ok "the built-in engineer does not write plain CUDA" 2 'writes CuTe'
run cutegen eval "$root/examples/swish.py" first.cu --target cuda
ok "CuTe is refused where plain CUDA is wanted" 1 'refused'
sed -e '/cute\/tensor.hpp/d' -e '/^#ifdef CUTEGEN_DEVICE/,/^#endif/c\
#ifdef CUTEGEN_DEVICE\
template <int THREADS, int VEC>\
__global__ void swish_kernel(float const *x, float *y, int64_t n)\
{\
    int64_t const i = int64_t(blockIdx.x) * THREADS + threadIdx.x;\
    for (int v = 0; v < VEC \&\& VEC * i + v < n; ++v)\
        y[VEC * i + v] = x[VEC * i + v] / (1.0f + expf(-x[VEC * i + v]));\
}\
#endif' first.cu >plain.cu
run cutegen eval "$root/examples/swish.py" plain.cu --target cuda
ok "plain CUDA passes there" 0 '^pass'
run cutegen eval "$root/examples/swish.py" plain.cu
ok "and is refused where CuTe is wanted" 1 'refused'

# ---- a kernel of several parts ---------------------------------------------------------
cat >parts.cu <<'END'
// part 1, pointwise: sigmoid; reads x; makes (n) f32; moves 8192 bytes
// part 2, pointwise: mul; reads part 1, x; makes (n) f32; moves 12288 bytes
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
__global__ void sigmoid_kernel(float const *x, float *s, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    if (i < n)
        s[i] = 1.0f / (1.0f + expf(-x[i]));
}

__global__ void multiply_kernel(float const *x, float const *s, float *y, int64_t n)
{
    int64_t const i = int64_t(blockIdx.x) * 256 + threadIdx.x;
    if (i < n)
        y[i] = x[i] * s[i];
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];
    int64_t n = cutegen_numel(x);
    struct cutegen_dim grid = cutegen_dim3(cutegen_ceil_div(n, 256), 1, 1), block = cutegen_dim3(256, 1, 1);
    float *s = (float *)cutegen_workspace(call, 4 * n);
    cutegen_part(call, 1);
    CUTEGEN_TRY(CUTEGEN_LAUNCH(call, sigmoid_kernel, grid, block, 0, CUTEGEN_DATA(float const, x), s, n));
    cutegen_part(call, 2);
    return CUTEGEN_LAUNCH(call, multiply_kernel, grid, block, 0, CUTEGEN_DATA(float const, x), s,
                          CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
END
run cutegen eval "$root/examples/swish.py" parts.cu --target cuda
ok "a kernel of two parts passes" 0 '^pass'
run cutegen show last
ok "... and its time is shown by part" 0 '^ +2 +[0-9]+ % +[0-9.]+ us +1 +12.3 kB  mul$'
run cutegen prompt "$root/examples/swish.py" --target cuda --stage optimize --kernel parts.cu
ok "... and a model is given its parts" 0 'It is the turn of part 2, which costs most'
run cutegen show last --json
out=$(python3 -c 'import json, sys
p = json.load(sys.stdin)["parts"]
print(p["times"], sum(x["share"] for x in p["list"]) + p["other_us"], [x["after"] for x in p["list"]])' <<<"$out")
ok "... and a program" 0 '^modelled (1\.0|0\.99).* \[\[\], \[1\]\]$'

echo "1..$n"
exit $failed
