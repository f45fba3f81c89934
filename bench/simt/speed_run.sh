#!/usr/bin/env bash
# run.sh - the measuring half of speed.sh, in the folder it made. Needs gcc and idle cores.
#
#     run.sh [PART...]      parts: nine two compile; all without
#
# nine: seconds of processor time on one core, the best of three turns, memory checks on; the turns of the
# programs alternate, so that a busy machine slows them alike. "simt" is without traffic counters, as the
# prototypes are; the columns after it say what counters and full checks change, and what 8 lanes (AVX2) take.
# two: on the pair of CPUs that add most to each other at the time (cores.c), one thread beside two, how many CPUs
# were busy with it, and beside it what two processes that share nothing get from the same pair: what the machine
# has to give.
# compile: translation and the C compiler, four kernels at a time, the best of three.
# TURNS=N changes the turns, CORE=N the core of the first part.
set -u
here=$(cd "$(dirname "$0")" && pwd)
parts=${*:-nine two compile}
turns=${TURNS:-3}
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
gcc -O2 -march=native -pthread -o cores cores.c -lm
read -r one other gain <<<"$(./cores --pick)"
core=${CORE:-$one}
C="-shared -fPIC -w -ffp-contract=off -fno-math-errno -fno-strict-aliasing -march=native"
if [[ $parts = *nine* ]]; then
    gcc -O3 -march=native $neon -ffp-contract=off -w -rdynamic $wrt -o wbench -ldl -lm &
    gcc -O2 -march=native -ffp-contract=off -w -rdynamic bbench.c props.c -o bbench -ldl -lm -lpthread &
    for k in simple sgemm hgemm; do
        lanes=4
        [ $k = simple ] && lanes=8
        gcc -O1 $C -DEMU_CHECK=1 -I. b_$k.c -o b_$k.so -lm &
        gcc -O1 -fschedule-insns $neon -DL=$lanes $C -I. w_$k.c -o w_$k.so -lm &
    done
fi
if [ "$parts" != compile ]; then # into the cache
    for k in gelu softmax softmaxW sgemm hgemm matmul matmulS mandel diverge; do
        ./simt_bench ptx --repeat 1 $k >/dev/null &
        [[ $parts = *nine* ]] && ./simt_bench ptx --repeat 1 --lanes 8 $k >/dev/null &
    done
fi
wait

# turn WHO CPUS COMMAND...: "who kernel seconds"
turn()
{
    local who=$1 cpus=$2
    shift 2
    taskset -c "$cpus" "$@" 2>/dev/null | awk -v who="$who" '$3 == "s" { print who, $1, $2, $NF }'
}

nine()
{
    {
        for ((i = 0; i < turns; i++)); do
            turn simt "$core" ./simt_bench ptx --seconds 0.15 --no-counters
            SO=w REPS=5 turn warp "$core" ./wbench
            turn counters "$core" ./simt_bench ptx --seconds 0.1
            turn full "$core" ./simt_bench ptx --seconds 0.1 --no-counters --check full
            [ "$i" = 0 ] && [ "$(uname -m)" = x86_64 ] && turn avx2 "$core" ./simt_bench ptx --no-counters --lanes 8
        done
        REPS=1 turn thread "$core" ./bbench
    } | awk '
        { k = $1 " " $2; if (!(k in m) || $3 < m[k]) m[k] = $3; if (!($2 in seen)) { seen[$2] = 1; name[n++] = $2 } }
        function over(a, b) { return b ? a / b : 0 }
        END {
            print "| kernel | simt s | warp s | thread s | warp/simt | thread/simt | counters | full check | 8 lanes s |"
            print "|---|---|---|---|---|---|---|---|---|"
            for (i = 0; i < n; i++) {
                x = name[i]; s = m["simt " x]
                printf "| %s | %.4f | %.4f | %.4f | %.2f | %.2f | %.2f | %.2f | %.4f |\n", x, s, m["warp " x], m["thread " x], over(m["warp " x], s), over(m["thread " x], s), over(m["counters " x], s), over(m["full " x], s), m["avx2 " x]
            }
        }'
}

two()
{
    echo "each turn takes the two CPUs that then add most to each other (gain under arithmetic); cores.c on the first:"
    ./cores "$one" "$other"
    {
        for ((i = 0; i < turns; i++)); do
            read -r one other gain <<<"$(./cores --pick)"
            echo "$one,$other: $gain" >&2
            turn one "$((i % 2 ? other : one))" ./simt_bench ptx --no-counters --wall --seconds 0.2
            turn two "$one,$other" ./simt_bench ptx --no-counters --wall --seconds 0.35 --threads 2
            turn twice "$one,$other" ./simt_bench ptx --no-counters --seconds 0.35 --twice
        done
    } | awk '
        { k = $1 " " $2; if (!(k in m) || $3 < m[k]) { m[k] = $3; busy[k] = $4 } if (!($2 in seen)) { seen[$2] = 1; name[n++] = $2 } }
        function over(a, b) { return b ? a / b : 0 }
        END {
            print "| kernel | one thread s | two threads s | gain | CPUs busy | two processes s | their gain | threads/processes |"
            print "|---|---|---|---|---|---|---|---|"
            for (i = 0; i < n; i++) {
                x = name[i]; s = m["one " x]; g = over(s, m["two " x]); p = over(2 * s, m["twice " x])
                printf "| %s | %.4f | %.4f | %.2f | %.2f | %.4f | %.2f | %.2f |\n", x, s, m["two " x], g, busy["two " x], m["twice " x], p, over(g, p)
            }
        }'
}

compile()
{
    cat >one.sh <<'ONE'
best=9
for i in 1 2 3; do
    d=$(mktemp -d -p .)
    t=$({ TIMEFORMAT="%U %S"; time ./cutegen-simtc --ptx "$1" --kernel "$2" --block "$3" --cc gcc --cache "$d" >"$d/out"; } 2>&1 | tail -1)
    n=$(sed 's/.*"instructions":\([0-9]*\).*/\1/' "$d/out")
    best=$(echo "$t $best" | awk '{ s = $1 + $2; print (s < $3 ? s : $3) }')
    rm -rf "$d"
done
echo "$2 $n $best" | awk '{ l = 0.1 + 0.0008 * $2; printf "%-20s %5d %.3f %.3f %.2f %s\n", $1, $2, $3, l, $3 / l, ($3 > l ? "over" : "") }'
ONE
    echo "translation and compile, seconds of processor time (limit: 0.1 s + 0.8 ms per PTX instruction)"
    xargs -P 4 -L 1 bash one.sh <blocks >seconds
    sort -k3 -n seconds | awk '{ t[n++] = $3; if ($6 == "over") { over++; print } }
        END { printf "%d kernels: median %.2f s, largest %.2f s, %d over the limit\n", n, t[int(n / 2)], t[n - 1], over }'
    [ -n "${TIMES:-}" ] && cp seconds "$TIMES"
}

for p in $parts; do
    $p
    echo
done
