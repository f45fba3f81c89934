#!/usr/bin/env bash
# speed.sh - the nine kernels of the prototypes on simt and on both prototypes, in one run.
#
#     bench/simt/speed.sh PROTOTYPE_DIR CUTLASS_SOURCE_DIR [PTX_DIR]
#
# PROTOTYPE_DIR has thread/ and warp/; CUTLASS_SOURCE_DIR is what nvidia-cutlass unpacks to cutlass_library/source.
# Kernels are compiled with nvcc unless PTX_DIR has them already (simple.ptx sgemm.ptx hgemm.ptx). Needs build/release.
# Seconds of processor time on one core, the best of three turns, memory checks and counters on; the turns of the
# programs alternate, so that a busy machine slows them alike. The prototypes are aarch64 programs: on x86_64 the
# warp one is built on prototype_x86/arm_neon.h (16-byte vectors) and the thread prototype's fiber switch.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
proto=$(cd "$1" && pwd)
cutlass=$(cd "$2" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
ptx=${3:-$tmp/k}
ninja -C "$root/build/release" src/simt/cutegen-simtc tests/simt/simt_bench >/dev/null
cp -r "$proto"/warp/. "$proto"/thread/. "$tmp"
chmod -R u+w "$tmp"
cd "$tmp"
if [ $# -lt 3 ]; then
    python3 k/make_gemms.py "$cutlass" k
    for k in simple sgemm hgemm; do
        nvcc -ptx -lineinfo -arch=compute_80 -std=c++17 --expt-relaxed-constexpr -I"$cutlass/include" k/$k.cu -o k/$k.ptx
    done
fi
sed -i 's/CLOCK_MONOTONIC/CLOCK_PROCESS_CPUTIME_ID/g' wrt.c rt.c
neon=
if [ "$(uname -m)" = x86_64 ]; then
    neon="-I$here/prototype_x86"
    python3 - <<'PY'
warp, thread = open('wrt.c').read(), open('rt.c').read()
switch = thread[thread.index('#else\nasm(') + 6:thread.index('#endif\nextern void emu_entry')]
switch = switch.replace('emu_entry', 'wv_entry').replace('emu_fiber_main', 'wv_main')
at = warp.index('asm(".text'); end = warp.index('static uint64_t nswitch;')
warp = warp[:at] + switch + warp[end:]
warp = warp.replace('STK-256)', 'STK-248)').replace('p[0]=(uint64_t)W; p[11]=(uint64_t)wv_entry;', 'p[4]=(uint64_t)W; p[6]=(uint64_t)wv_entry;')
open('wrt.c', 'w').write(warp)
PY
fi
C="-shared -fPIC -w -ffp-contract=off -fno-math-errno -fno-strict-aliasing -march=native"
gcc -O3 -march=native $neon -ffp-contract=off -w -rdynamic wrt.c -o wbench -ldl -lm
gcc -O2 -march=native -ffp-contract=off -w -rdynamic bbench.c props.c -o bbench -ldl -lm -lpthread
for k in simple sgemm hgemm; do
    python3 ptx2c.py "$ptx/$k.ptx" b_$k.c fiber
    gcc -O1 $C -DEMU_CHECK=1 -I. b_$k.c -o b_$k.so -lm
    lanes=4
    [ $k = simple ] && lanes=8
    python3 wptx.py "$ptx/$k.ptx" w_$k.c dual=1 tile=8 2>/dev/null
    gcc -O1 -fschedule-insns $neon -DL=$lanes $C -I. w_$k.c -o w_$k.so -lm
done
ours=$root/build/release/tests/simt/simt_bench
# turn WHO COMMAND...
turn()
{
    local who=$1
    shift
    "$@" 2>/dev/null | awk -v who="$who" '$3 == "s" { print who, $1, $2 }'
}
{
    for _ in 1 2 3; do
        turn simt "$ours" "$ptx"
        SO=w turn warp ./wbench
        turn full "$ours" "$ptx" --check full
        turn nocount "$ours" "$ptx" --no-counters
    done
    turn thread ./bbench
    for _ in 1 2; do
        turn wall1 "$ours" "$ptx" --wall
        turn wall2 "$ours" "$ptx" --wall --threads 2
    done
} | awk '
    { k = $1 " " $2; if (!(k in m) || $3 < m[k]) m[k] = $3; if (!($2 in seen)) { seen[$2] = 1; name[n++] = $2 } }
    END {
        printf "%-12s %8s %8s %8s %10s %10s %10s %9s %9s\n", "kernel", "simt s", "warp s", "thread s", "warp/simt", "thread/simt", "full/mem", "counters", "2 cores"
        for (i = 0; i < n; i++) {
            x = name[i]; s = m["simt " x]
            printf "%-12s %8.4f %8.4f %8.4f %10.2f %10.2f %10.2f %9.2f %9.2f\n", x, s, m["warp " x], m["thread " x], m["warp " x] / s, m["thread " x] / s, m["full " x] / s, s / m["nocount " x], m["wall1 " x] / m["wall2 " x]
        }
    }'
echo
echo "translation and compile, seconds of processor time (limit: 0.1 s + 0.8 ms per PTX instruction)"
for x in "simple gelu4" "simple softmax" "simple softmaxW" "simple matmul" "simple mandel" "simple diverge" \
    "sgemm cute_sgemm" "hgemm cute_hgemm"; do
    set -- $x
    best=99
    for _ in 1 2 3; do
        t=$({ /usr/bin/time -f '%U %S' "$root/build/release/src/simt/cutegen-simtc" --ptx "$ptx/$1.ptx" --kernel "$2" \
            --cc gcc --cache "$tmp/cache" >"$tmp/out"; } 2>&1 | awk '{ print $1 + $2 }')
        rm -rf "$tmp/cache"
        best=$(echo "$t $best" | awk '{ print $1 < $2 ? $1 : $2 }')
    done
    n=$(sed 's/.*"instructions":\([0-9]*\).*/\1/' "$tmp/out")
    echo "$2 $n $best" | awk '{ printf "%-12s %5d instructions %.2f s, limit %.2f s\n", $1, $2, $3, 0.1 + 0.0008 * $2 }'
done
