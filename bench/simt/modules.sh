#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# modules.sh - how long simt takes to translate and compile kernels that nobody tuned it for.
#
#     bench/simt/modules.sh OUT [SIMTC]
#
# Writes kernels into OUT by modules.py (COUNT=300, SEED=1) unless they are there, compiles them with nvcc for sm_80 and
# sm_90 in turns, and measures the processor time of translation and the C compiler for each, ONE=N kernels at a time
# (1). OUT/times has a line "KERNEL INSTRUCTIONS SECONDS LIMIT RATIO" for each; the table is printed. SIMTC is the
# translator to measure, of build/release unless named. A kernel above the limit is measured up to TURNS (3) times, and
# the least counts: other work on the machine only ever adds.
set -u
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?usage: modules.sh OUT [SIMTC]}"
out=$(cd "$1" && pwd)
simtc=${2:-$here/../../build/release/src/simt/cutegen-simtc}
simtc=$(cd "$(dirname "$simtc")" && pwd)/$(basename "$simtc")
[ -e "$out/kernels" ] || "$here/modules.py" "$out" --count "${COUNT:-300}" --seed "${SEED:-1}" || exit 1
number=0
for cu in $(find "$out" -name 'mod*.cu' | sort -V); do
    arch=sm_$((number++ % 2 ? 90 : 80))
    [ -e "${cu%.cu}.ptx" ] || nvcc -ptx -lineinfo -w -std=c++17 -arch=$arch "$cu" -o "${cu%.cu}.ptx" || exit 1
done
cat >"$out/one.sh" <<'ONE'
file=$1 kernel=$2 block=$3 best=
for ((turn = 0; turn < ${TURNS:-3}; turn++)); do
    d=$(mktemp -d)
    TIMEFORMAT="%U %S"
    t=$({ time "$SIMTC" --ptx "$file" --kernel "$kernel" --block "$block" --cc gcc --cache "$d" >"$d/out" 2>&1; } 2>&1)
    n=$(sed -n 's/.*"instructions":\([0-9]*\).*/\1/p' "$d/out")
    [ -n "$n" ] || echo "$kernel: $(head -c 300 "$d/out")" >&2
    rm -rf "$d"
    [ -n "$n" ] || exit 0
    best=$(echo "$t $best" | awk '{ s = $1 + $2; print ($3 == "" || s < $3) ? s : $3 }')
    awk -v s="$best" -v n="$n" 'BEGIN { exit !(s <= 0.1 + 0.0008 * n) }' && break
done
awk -v k="$kernel" -v n="$n" -v s="$best" 'BEGIN { l = 0.1 + 0.0008 * n; printf "%s %d %.3f %.3f %.2f\n", k, n, s, l, s / l }'
ONE
cd "$out" || exit 1
SIMTC=$simtc xargs -P "${ONE:-1}" -L 1 bash one.sh <kernels >'times'
awk '
    BEGIN { split("0.25 0.5 0.75 1 1.5 2 4", edge); name[8] = "above 4" }
    {
        n++
        k = $2 <= 100 ? 1 : $2 <= 300 ? 2 : $2 <= 1000 ? 3 : $2 <= 5000 ? 4 : 5
        for (i = 1; i <= 7 && $5 > edge[i]; i++) ;
        count[i, k]++; all[i]++; of[k]++; over += $5 > 1; seconds += $3
    }
    END {
        print "| seconds / limit | up to 100 instructions | 101-300 | 301-1000 | 1001-5000 | above 5000 | all |"
        print "|---|---|---|---|---|---|---|"
        for (i = 1; i <= 8; i++) {
            printf "| %s |", i < 8 ? "up to " edge[i] : name[i]
            for (k = 1; k <= 5; k++)
                printf " %d |", count[i, k]
            printf " %d |\n", all[i]
        }
        printf "| kernels |"
        for (k = 1; k <= 5; k++)
            printf " %d |", of[k]
        printf " %d |\n", n
        printf "%d kernels, %.0f s in all, %d above the limit\n", n, seconds, over
    }' times
sort -k5 -n times | awk '$5 > 1' | tail -40
