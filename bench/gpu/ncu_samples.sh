#!/usr/bin/env bash
# ncu_samples.sh - real outputs of ncu for several kernels: the test data in tests/eval/ncu.
#
#     bench/gpu/ncu_samples.sh TREE OUT TASK=KERNEL.cu...        TREE: an unpacked relocatable cutegen
#
# Puts a script in front of cutegen-runner that runs the first runner of an `eval` that has a kernel under ncu, and keeps what
# ncu prints: the raw page and the details page (which holds its advice), both as CSV.
set -u
from=$(readlink -f "$1")
out=$(readlink -f "$2")
shift 2
work=$(mktemp -d)
cp -a "$from" "$work/tree"
cutegen=$work/tree/bin/cutegen
examples=$work/tree/share/cutegen/examples
runner=$work/tree/libexec/cutegen/cutegen-runner
export CUTEGEN_CACHE=$work/cache

say() { printf '\n== %s\n' "$*"; }
took() { python3 -c "print('%s took %.1f s' % ('$1', $(date +%s.%N) - $2))"; }

ncu --version | tail -2
command -v ncu
mv "$runner" "$runner-plain"
# The first runner only tells what the device is. Runners get a clean environment: everything is written into the script.
cat >"$runner" <<END
#!/bin/sh
n=\$(ls "$work"/count.* 2>/dev/null | wc -l)
touch "$work/count.\$n"
[ "\$n" = 1 ] || exec "$runner-plain" "\$@"
exec $(command -v ncu) --set full --import-source no --log-file "$work/ncu.log" -f -o "$work/report" --launch-count 2 "$runner-plain" "\$@"
END
chmod 755 "$runner"
for pair in "$@"; do
    task=${pair%%=*}
    kernel=${pair#*=}
    name=$task-$(basename "$kernel" .cu)
    rm -f "$work"/count.* "$work/report.ncu-rep" "$work/ncu.log"
    say "eval $name under ncu"
    start=$(date +%s.%N)
    (cd "$work" && "$cutegen" eval "$examples/$task.py" "$kernel" --device cuda:0 --no-server 2>&1 ||
        "$cutegen" eval "$examples/$task.py" "$kernel" --device cuda:0) 2>&1 | tail -8
    took eval "$start"
    tail -4 "$work/ncu.log"
    [ -f "$work/report.ncu-rep" ] || continue
    start=$(date +%s.%N)
    ncu --import "$work/report.ncu-rep" --page raw --csv --print-units base >"$out/$name.raw.csv" 2>"$out/$name.err"
    took import "$start"
    ncu --import "$work/report.ncu-rep" --page details --csv >"$out/$name.details.csv" 2>>"$out/$name.err"
    ls -l "$out/$name".*
done
# One way of getting everything at once, without a report file.
say "direct: the raw page while it runs, chosen sections"
rm -f "$work"/count.*
cat >"$runner" <<END
#!/bin/sh
n=\$(ls "$work"/count.* 2>/dev/null | wc -l)
touch "$work/count.\$n"
[ "\$n" = 1 ] || exec "$runner-plain" "\$@"
exec $(command -v ncu) --csv --page raw --print-units base --section LaunchStats --section Occupancy --section SpeedOfLight \
    --section MemoryWorkloadAnalysis --section WarpStateStats --section SchedulerStats --log-file "$out/direct.raw.csv" \
    --launch-count 2 "$runner-plain" "\$@"
END
start=$(date +%s.%N)
(cd "$work" && "$cutegen" eval "$examples/$task.py" "$kernel" --device cuda:0) 2>&1 | tail -3
took direct "$start"
rm -rf "$work"
