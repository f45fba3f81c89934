#!/usr/bin/env bash
# run.sh - the measuring half of speed.sh, in the folder it made. Wants gcc and two cores nobody else uses.
#
#     run.sh [FIRST_CORE]
#
# Seconds of processor time on one core, the best of three turns, memory checks on; the turns of the programs
# alternate, so that a busy machine slows them alike. "simt" is without traffic counters, as the prototypes are;
# the columns after it say what counters, full checks and a second core change, and what 8 lanes (AVX2) take.
set -u
here=$(cd "$(dirname "$0")" && pwd)
core=${1:-0}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r "$here"/. "$tmp"
cd "$tmp" || exit 1
export CUTEGEN_CACHE=$tmp/cache LD_LIBRARY_PATH=$tmp/lib
wrt=wrt.c neon=
if [ "$(uname -m)" = x86_64 ]; then
    neon=-Iprototype_x86
    wrt=wrt_x86_64.c
fi
C="-shared -fPIC -w -ffp-contract=off -fno-math-errno -fno-strict-aliasing -march=native"
gcc -O3 -march=native $neon -ffp-contract=off -w -rdynamic $wrt -o wbench -ldl -lm &
gcc -O2 -march=native -ffp-contract=off -w -rdynamic bbench.c props.c -o bbench -ldl -lm -lpthread &
for k in simple sgemm hgemm; do
    lanes=4
    [ $k = simple ] && lanes=8
    gcc -O1 $C -DEMU_CHECK=1 -I. b_$k.c -o b_$k.so -lm &
    gcc -O1 -fschedule-insns $neon -DL=$lanes $C -I. w_$k.c -o w_$k.so -lm &
done
wait
# turn WHO COMMAND...
turn()
{
    local who=$1
    shift
    taskset -c "$core" "$@" 2>/dev/null | awk -v who="$who" '$3 == "s" { print who, $1, $2 }'
}
{
    for _ in 1 2 3; do
        turn simt ./simt_bench ptx --no-counters
        SO=w REPS=3 turn warp ./wbench
        turn counters ./simt_bench ptx
        turn full ./simt_bench ptx --no-counters --check full
        [ "$(uname -m)" = x86_64 ] && turn avx2 ./simt_bench ptx --no-counters --lanes 8
    done
    REPS=1 turn thread ./bbench
    for _ in 1 2; do
        turn wall1 ./simt_bench ptx --no-counters --wall
        taskset -c "$core,$((core + 1))" ./simt_bench ptx --no-counters --wall --threads 2 |
            awk '$3 == "s" { print "wall2", $1, $2 }'
    done
} | awk '
    { k = $1 " " $2; if (!(k in m) || $3 < m[k]) m[k] = $3; if (!($2 in seen)) { seen[$2] = 1; name[n++] = $2 } }
    function over(a, b) { return b ? a / b : 0 }
    END {
        print "| kernel | simt s | warp s | thread s | warp/simt | thread/simt | counters | full check | 2 cores | 8 lanes s |"
        print "|---|---|---|---|---|---|---|---|---|---|"
        for (i = 0; i < n; i++) {
            x = name[i]; s = m["simt " x]
            printf "| %s | %.4f | %.4f | %.4f | %.2f | %.2f | %.2f | %.2f | %.2f | %.4f |\n", x, s, m["warp " x], m["thread " x], over(m["warp " x], s), over(m["thread " x], s), over(m["counters " x], s), over(m["full " x], s), over(m["wall1 " x], m["wall2 " x]), m["avx2 " x]
        }
    }'
echo
echo "translation and compile, seconds of processor time (limit: 0.1 s + 0.8 ms per PTX instruction)"
# compile FILE KERNEL
compile()
{
    local t n
    t=$({ /usr/bin/env bash -c 'TIMEFORMAT="%U %S"; time taskset -c '"$core"' ./cutegen-simtc --ptx '"$1"' --kernel '"$2"' --cc gcc --cache cache/c >out'; } 2>&1 |
        awk '{ print $1 + $2 }')
    rm -rf cache/c
    n=$(sed 's/.*"instructions":\([0-9]*\).*/\1/' out)
    echo "$2 $n $t" | awk '{ l = 0.1 + 0.0008 * $2; printf "%-20s %5d %.2f %.2f %s\n", $1, $2, $3, l, ($3 > l ? "over" : "") }'
}
for x in "simple gelu4" "simple softmax" "simple softmaxW" "simple matmul" "simple mandel" "simple diverge" \
    "sgemm cute_sgemm" "hgemm cute_hgemm"; do
    set -- $x
    compile "ptx/$1.ptx" "$2"
done
for f in tests/*.ptx; do
    for k in $(sed -n 's/.*\.visible \.entry \([A-Za-z0-9_]*\).*/\1/p' "$f"); do
        compile "$f" "$k"
    done
done >tests.times
sort -k3 -n tests.times | awk '{ t[n++] = $3; over += $5 == "over"; if ($5 == "over") print }
    END { printf "%d kernels of the tests: median %.2f s, largest %.2f s, %d over the limit\n", n, t[int(n / 2)], t[n - 1], over }'
