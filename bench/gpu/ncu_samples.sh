#!/usr/bin/env bash
# ncu_samples.sh - real outputs of ncu for several kernels: the test data of src/toolchain/ncu.c.
#
#     bench/gpu/ncu_samples.sh TREE OUT        TREE: an unpacked relocatable cutegen
#
# Puts a script in front of cutegen-runner that runs the first runner of an `eval` under ncu, and keeps
# what ncu prints: the raw page and the details page (which holds its advice), both as CSV.
set -u
from=$(readlink -f "$1")
out=$(readlink -f "$2")
work=$(mktemp -d)
cp -a "$from" "$work/tree"
cutegen=$work/tree/bin/cutegen
examples=$work/tree/share/cutegen/examples
runner=$work/tree/libexec/cutegen/cutegen-runner
export CUTEGEN_CACHE=$work/cache
cd "$work" || exit 3

say() { printf '\n== %s\n' "$*"; }

ncu --version | tail -2
# Kernels: a given one, and the built-in engineer's first and best of three classes.
cp "$examples/kernels/swish.cu" swish-hand.cu
for task in swish softmax square_matmul layer_norm; do
    say "run $task"
    "$from/bin/cutegen" run "$examples/$task.py" --device cuda:0 --no-report 2>&1 | tail -25
    "$from/bin/cutegen" show last --attempt 1 --source >"$task-first.cu"
    "$from/bin/cutegen" show last --source >"$task-best.cu"
done

mv "$runner" "$runner-plain"
cat >"$runner" <<END
#!/bin/sh
n=\$(ls "$work"/count.* 2>/dev/null | wc -l)
touch "$work/count.\$n"
# the first runner only tells what the device is
[ "\$n" = "\$NCU_AT" ] || exec "$runner-plain" "\$@"
exec ncu --set full --import-source no --log-file "$work/ncu.log" -f -o "$work/report" --launch-count 2 \
    "$runner-plain" "\$@"
END
chmod 755 "$runner"
for kernel in swish-hand swish-first swish-best softmax-first softmax-best square_matmul-first square_matmul-best layer_norm-best; do
    rm -f count.* report.ncu-rep ncu.log
    say "eval $kernel under ncu"
    task=${kernel%-*}
    start=$(date +%s.%N)
    NCU_AT=1 "$cutegen" eval "$examples/$task.py" "$kernel.cu" --device cuda:0 2>&1 | tail -8
    echo "eval took $(echo "$(date +%s.%N) - $start" | bc) s; runners: $(ls count.* | wc -l)"
    tail -5 ncu.log
    cp "$kernel.cu" "$out/"
    [ -f report.ncu-rep ] || continue
    start=$(date +%s.%N)
    ncu --import report.ncu-rep --page raw --csv >"$out/$kernel.raw.csv" 2>"$out/$kernel.err"
    ncu --import report.ncu-rep --page details --csv --print-details all >"$out/$kernel.details.csv" 2>>"$out/$kernel.err"
    echo "import took $(echo "$(date +%s.%N) - $start" | bc) s"
    ls -l "$out/$kernel".*
done
# One way of getting everything at once, without a report file, and how long the parts take.
say "direct: the raw page while it runs, chosen sections"
rm -f count.*
cat >"$runner" <<END
#!/bin/sh
n=\$(ls "$work"/count.* 2>/dev/null | wc -l)
touch "$work/count.\$n"
[ "\$n" = "1" ] || exec "$runner-plain" "\$@"
exec ncu --csv --page raw --section LaunchStats --section Occupancy --section SpeedOfLight --section MemoryWorkloadAnalysis \
    --section WarpStateStats --section SchedulerStats --section SpeedOfLight_RooflineChart \
    --log-file "$out/direct.raw.csv" --launch-count 2 "$runner-plain" "\$@"
END
start=$(date +%s.%N)
"$cutegen" eval "$examples/softmax.py" softmax-best.cu --device cuda:0 2>&1 | tail -8
echo "took $(echo "$(date +%s.%N) - $start" | bc) s"
start=$(date +%s.%N)
"$from/bin/cutegen" eval "$examples/softmax.py" softmax-best.cu --device cuda:0 2>&1 | tail -3
echo "without ncu $(echo "$(date +%s.%N) - $start" | bc) s"
rm -rf "$work"
