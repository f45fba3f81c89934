#!/usr/bin/env bash
# simt_run_test.sh - kernels run by hand on simt: outputs, findings, mistakes in the call.
#
#     tests/e2e/simt_run_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
n=0
failed=0
out=
code=0

run() { out=$("$program" simt run "$@" 2>&1); code=$?; }

# ok SENTENCE EXIT-CODE PATTERN : about the last run.
ok()
{
    n=$((n + 1))
    if [[ $code == "$2" ]] && grep -qE -- "$3" <<<"$out"; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    echo "# exit $code, wanted $2, pattern: $3"
    head -25 <<<"$out" | sed 's/^/# /'
    failed=1
}

cat > rev.cu <<'CU'
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
__global__ void rev(float const *x, float *y, int n)
{
    __shared__ float s[128];
    s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
    SYNC
    y[blockIdx.x * 128 + threadIdx.x] = s[127 - threadIdx.x];
}
#endif
#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    int n = (int)call->in[0].shape[0];
    return CUTEGEN_LAUNCH(call, rev, cutegen_dim3(n / 128, 1, 1), cutegen_dim3(128, 1, 1), 0,
                          CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float, &call->out[0]), n);
}
#endif
CU
sed 's/SYNC/__syncthreads();/' rev.cu > good.cu
sed 's/SYNC//' rev.cu > bad.cu

run good.cu --input 'f32[256]=index' --output 'f32[256]'
ok "a kernel's outputs are shown" 0 '127 126 125'
run good.cu --input 'f32[256]=index' --output "f32[256]=@$work/out.bin" --json
ok "as JSON too" 0 '"outputs":\[\{"name":"output0","first":\[127'
[[ $(wc -c < "$work/out.bin" 2>/dev/null) == 1024 ]] || code=9
ok "and go into a file" 0 outcome
run bad.cu --input 'f32[256]=index' --output 'f32[256]'
ok "a race is named with the user's file and line" 1 'race at bad.cu:8'
ok "and with the other thread" 1 'the other is thread .* at line 6'
run bad.cu --input 'f32[200]=index' --output 'f32[128]' --check memory
ok "the level of checks can be chosen" 0 '^ok'
run good.cu --input 'f32[256]=index' --output 'f32[128]'
ok "a write past the end is named with its buffer" 1 'bytes at offset [0-9]+ of out0, which has 512 bytes'
cat > shapes.cu <<'CU'
#include <cutegen/kernel.h>
#ifdef CUTEGEN_DEVICE
__global__ void rows(float const *x, float *y)
{
    int i = threadIdx.y * blockDim.x + threadIdx.x;
    y[i] = x[i] + 100 * threadIdx.y;
}
#endif
#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    for (int i = 0; i < 2; i++)
        if (CUTEGEN_LAUNCH(call, rows, cutegen_dim3(1, 1, 1), i ? cutegen_dim3(16, 4, 1) : cutegen_dim3(32, 2, 1), 0,
                            CUTEGEN_DATA(float const, &call->in[0]), CUTEGEN_DATA(float, &call->out[i])))
            return 1;
    return 0;
}
#endif
CU
run shapes.cu --input 'f32[64]=index' --output "f32[64]=@$work/a.bin" --output "f32[64]=@$work/b.bin"
got=$(od -An -tf4 -v -w4 -j68 -N4 a.bin; od -An -tf4 -v -w4 -j128 -N4 a.bin; od -An -tf4 -v -w4 -j68 -N4 b.bin)
[[ $(echo $got) == "17 132 117" ]] || code="9 $got"
ok "a plan launches a kernel with blocks of two shapes" 0 '^ok'
inputs=()
for _ in $(seq 11); do inputs+=(--input 'f32[256]=normal'); done
sed 's/DATA(float const, &call->in\[0\])/DATA(float const, \&call->in[10])/' good.cu > last.cu
run good.cu "${inputs[@]}" --output "f32[256]=@$work/first.bin"
run last.cu "${inputs[@]}" --output "f32[256]=@$work/last.bin"
! cmp -s first.bin last.bin || code="9 the same"
ok "the first and the eleventh input are filled with other numbers" 0 '^ok'
run good.cu --input 'f32[256]=index' --output 'f32[256]' --simt-as rtx5090
ok "a time of a card that was never measured says so" 0 'modelled, unvalidated for RTX 5090, not measured'
sed 's/cutegen_dim3(128, 1, 1), 0/cutegen_dim3(128, 1, 1), 100 * 1024/' good.cu > large.cu
run large.cu --input 'f32[256]=index' --output 'f32[256]' --simt-as h100
ok "100 KB of shared memory fit an H100" 0 'modelled, unvalidated for H100'
run large.cu --input 'f32[256]=index' --output 'f32[256]' --simt-as rtx4090
ok "and no RTX 4090" 1 '102400 bytes of dynamic shared memory.* 101376'
sed 's/__shared__ float s\[128\]/__shared__ float s[4096]/; s/cutegen_dim3(128, 1, 1), 0/cutegen_dim3(128, 1, 1), 99 * 1024/' good.cu > both.cu
run both.cu --input 'f32[256]=index' --output 'f32[256]' --simt-as rtx4090
ok "static shared memory counts as well" 1 'dynamic.*static.* 101376'
run good.cu --input 'f32[256]=index' --output 'f32[256]' --simt-as b200 --simt-arch 90a
ok "code of another GPU alone is refused" 2 'B200 .sm_100., which runs no code for sm_90a'
run good.cu --input 'f32[256]=nonsense' --output 'f32[256]'
ok "a fill that does not exist is refused" 2 "does not say how to fill"
run missing.cu --input 'f32[256]' --output 'f32[256]'
ok "a file that is not there is refused" 2 "missing.cu"
run "$root/examples/kernels/swish.cu" --input 'f16[256]=normal' --output 'f32[256]'
ok "what the plan asks for is said" 1 'x must be f32'
echo "1..$n"
exit $failed
