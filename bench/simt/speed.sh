#!/usr/bin/env bash
# speed.sh - nine kernels on simt and on two earlier engines, in one run.
#
#     bench/simt/speed.sh PROTOTYPES OUT [PTX_DIR]
#
# PROTOTYPES has thread/ and warp/, whose cases the kernels of bench/simt/speed/ are written for; PTX_DIR
# may hold others of the same names (simple.ptx sgemm.ptx hgemm.ptx). Needs build/release, python3 and,
# without PTX_DIR, nvcc and CUTLASS's headers (CUTLASS=.../include). OUT then has all that OUT/run.sh wants
# on a quiet machine with gcc; run it there (about two minutes) for the tables.
#
# The prototypes are aarch64 programs: on x86_64 the warp one is built on prototype_x86/arm_neon.h (16-byte
# vectors) and the thread prototype's fiber switch.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
proto=$(cd "${1:?usage: speed.sh PROTOTYPES OUT [PTX_DIR]}" && pwd)
mkdir -p "${2:?usage: speed.sh PROTOTYPES OUT [PTX_DIR]}"
out=$(cd "$2" && pwd)
ninja -C "$root/build/release" src/simt/cutegen-simtc tests/simt/simt_bench >/dev/null
cp -r "$proto"/warp/. "$proto"/thread/. "$out"
chmod -R u+w "$out"
rm -rf "$out/k"
mkdir -p "$out/ptx" "$out/tests"
cp "$root/build/release/src/simt/cutegen-simtc" "$root/build/release/tests/simt/simt_bench" "$out"
cp "$root"/tests/simt/ptx/{gemm,intrinsics,pointwise,reduce,tile}.ptx "$out/tests"
cp "$here/speed_run.sh" "$out/run.sh"
cp "$here/cores.c" "$out"
# file, kernel, block: as a plan would say
{
    for k in gelu4 softmax softmaxW diverge mandel; do echo "ptx/simple.ptx $k 256,1,1"; done
    printf '%s\n' "ptx/simple.ptx matmul 32,8,1" "ptx/simple.ptx matmulS 32,8,1" \
        "ptx/sgemm.ptx cute_sgemm 256,1,1" "ptx/hgemm.ptx cute_hgemm 128,1,1"
    sed -n 's/^K(\([a-z0-9_]*\), "\([a-z]*\)", [0-9]*, [0-9]*, [0-9]*, \([0-9]*\), \([0-9]*\),.*/tests\/\2.ptx \1 \3,\4,1/p' \
        "$root/tests/simt/kernels.def"
} >"$out/blocks"
mkdir -p "$out/lib"
cp -L "$(ldd "$out/simt_bench" | awk '/jansson/ { print $3 }')" "$out/lib"
cp -r "$here/prototype_x86" "$out"
for k in simple sgemm hgemm; do
    if [ $# -gt 2 ]; then
        cp "$3/$k.ptx" "$out/ptx"
    else
        nvcc -ptx -lineinfo -arch=compute_80 -std=c++17 --expt-relaxed-constexpr -I"${CUTLASS:-/usr/include}" \
            "$here/speed/$k.cu" -o "$out/ptx/$k.ptx"
    fi
done
cd "$out"
sed -i 's/CLOCK_MONOTONIC/CLOCK_PROCESS_CPUTIME_ID/g' wrt.c rt.c
cp wrt.c wrt_x86_64.c
python3 - <<'PY'
warp, thread = open('wrt.c').read(), open('rt.c').read()
switch = thread[thread.index('#else\nasm(') + 6:thread.index('#endif\nextern void emu_entry')]
switch = switch.replace('emu_entry', 'wv_entry').replace('emu_fiber_main', 'wv_main')
at = warp.index('asm(".text'); end = warp.index('static uint64_t nswitch;')
warp = warp[:at] + switch + warp[end:]
warp = warp.replace('STK-256)', 'STK-248)').replace('p[0]=(uint64_t)W; p[11]=(uint64_t)wv_entry;', 'p[4]=(uint64_t)W; p[6]=(uint64_t)wv_entry;')
open('wrt_x86_64.c', 'w').write(warp)
PY
# The warp prototype has no 16-bit integers, which nvcc uses for one bit of an index: as 32-bit ones.
as_32='s/cvt\.u16\.u32([[:space:]]+)(%rs[0-9]+), (%r[0-9]+);/and.b32\1\2, \3, 65535;/
s/\.reg \.b16/.reg .b32/
s/and\.b16/and.b32/
s/shr\.u16/shr.u32/
s/mul\.wide\.u16/mul.lo.s32/'
for k in simple sgemm hgemm; do
    sed -E "$as_32" "ptx/$k.ptx" >w_$k.ptx
    python3 ptx2c.py "ptx/$k.ptx" b_$k.c fiber
    python3 wptx.py w_$k.ptx w_$k.c dual=1 tile=8 2>w_$k.log ||
        echo "the warp prototype cannot translate $k.ptx: $(tail -1 w_$k.log)" >&2
done
rm -rf __pycache__
