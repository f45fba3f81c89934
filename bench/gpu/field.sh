#!/usr/bin/env bash
# field.sh - the table of the field on a GPU, at the sizes of public suites, with every baseline; and both orders of the ladder.
#
#     bench/gpu/field.sh PATH-TO-CUTEGEN OUT-FOLDER [JOBS]
#
# Not run yet: no GPU was at hand when it was written. It leaves, in OUT-FOLDER: field-defaults.csv and suite-defaults.csv
# (eager under all three settings and torch.compile in one measurement each), the same with --baseline tf32, order.txt (first
# kernel, best kernel, kernels tried, with --order steps and predicted), tune.txt (the tuner on a model's kernel).
set -u
cutegen=$(readlink -f "$1") out=$2 jobs=${3:-1}
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"
out=$(readlink -f "$out")
export CUTEGEN_HOME=$root
python3 "$root/bench/gpu/real_sizes.py" tasks "$out/tasks" || exit 1
cp "$root"/examples/{matmul,square_matmul,lower_triangular_matmul,half_matmul,layer_norm,conv2d}.py "$out/tasks" 2>/dev/null

for setting in defaults tf32; do
    "$cutegen" suite "$out/tasks" --jobs "$jobs" --device cuda:0 --baseline $setting --compile default \
        --runs "$out/runs-$setting" >"$out/suite-$setting.txt" 2>&1
    cp "$out/runs-$setting"/*-suite-*/field.csv "$out/field-$setting.csv"
    cp "$out/runs-$setting"/*-suite-*/suite.csv "$out/suite-$setting.csv"
done

for task in "$out"/tasks/*.py; do
    for order in steps predicted; do
        "$cutegen" run "$task" --device cuda:0 --fresh --order $order --compile none --tune 0 --json --no-report \
            --runs "$out/runs-order" 2>/dev/null | python3 -c 'import json, sys
times = [e["measurement"]["time_us"] for e in map(json.loads, sys.stdin)
         if e.get("event") == "attempt" and e["judgement"]["verdict"] == "pass"]
if times:
    print(*sys.argv[1:], f"first {times[0]:.1f} us, best {min(times):.1f} us as number {times.index(min(times)) + 1} of {len(times)}")
' "$(basename "$task" .py)" $order
    done
done | tee "$out/order.txt"
sed -n "/^cat >kernel.cu/,/^END/p" "$root/tests/e2e/tune_test.sh" | sed '1d;$d' >"$out/swish_tunable.cu"
"$cutegen" tune "$root/examples/swish.py" "$out/swish_tunable.cu" --device cuda:0 --runs "$out/runs-tune" | tee "$out/tune.txt"
