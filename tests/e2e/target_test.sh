#!/usr/bin/env bash
# target_test.sh - runs that ask for another language than CuTe C++: prompts, refusals, and with Triton a whole run.
#
#     tests/e2e/target_test.sh PATH-TO-CUTEGEN
#
# What needs Triton is skipped by name where $CUTEGEN_PYTHON (default: python3) has none.
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

swish=$root/examples/swish.py
replay=replay:$root/examples/replays/swish-triton.jsonl
small=(--set BATCH=64 --set DIM=1024 --no-report)

# ---- without Triton ------------------------------------------------------------------
run cutegen run "$swish" --target triton
ok "the built-in engineer writes no Triton" 2 'the built-in engineer writes CuTe, not Triton'
run cutegen run "$swish" --target triton --model "$replay" --seed builtin
ok "... nor does it begin for a model" 2 'the built-in engineer writes CuTe, not Triton'
run cutegen tune "$swish" "$root/examples/triton/swish.py" --target triton
ok "a kernel in Triton has no tunables" 2 'kernels in Triton declare no tunables'
run cutegen run "$swish" --target fortran --model "$replay"
ok "an unknown language is refused with those there are" 2 'cute\|cuda\|triton'
for stage in synthesize diagnose repair optimize; do
    run cutegen prompt "$swish" --target triton --stage $stage --kernel "$root/examples/triton/swish.py"
    ok "the prompt to $stage is about Triton" 0 '^p\.inputs\[0\]  x  f32'
    run grep -cE 'CUTEGEN_|call->|__global__|cutlass' <<<"$out"
    ok "... and has no word of CUDA C++" 1 '^0$'
done
run cutegen prompt "$root/examples/square_matmul.py" --target triton
ok "its worked example is of the class" 0 'acc = tl\.dot'
run cutegen prompt "$root/examples/square_matmul.py" --target triton --example other
ok "... or of another" 0 'one block per row'
run cutegen prompt "$root/examples/square_matmul.py" --target triton --example none
run grep -c 'A worked example' <<<"$out"
ok "... or none" 1 '^0$'

for stage in synthesize optimize; do
    run cutegen prompt "$swish" --target cutedsl --stage $stage --kernel "$root/examples/cutedsl/swish.py"
    ok "the prompt to $stage in the CuTe DSL is about it" 0 '@cute\.kernel'
    run grep -cE 'CUTEGEN_|call->|__global__|@triton' <<<"$out"
    ok "... and about no other language" 1 '^0$'
done

# ---- with the CuTe DSL -----------------------------------------------------------------
export CUTEGEN_DSL_PYTHON=${CUTEGEN_DSL_PYTHON:-${CUTEGEN_PYTHON:-python3}}
if "$CUTEGEN_DSL_PYTHON" -c 'import cutlass.cute' 2>/dev/null; then
    { echo "CHANGE: 16 bytes per access"; echo '```python'; sed 's/cute.math.exp(-v)/cute.math.exq(-v)/' "$root/examples/cutedsl/swish.py"; echo '```'; } >dsl.md
    { echo "CHANGE: Triton"; echo '```python'; cat "$root/examples/triton/swish.py"; echo '```'; } >triton.md
    cat >dsl.jsonl <<END
{"stage": "synthesize", "reply_file": "triton.md"}
{"stage": "synthesize", "reply_file": "dsl.md"}
{"stage": "diagnose", "reply": "there is no exq"}
{"stage": "repair", "reply": "CHANGE: exp\n\n\`\`\`\n<<<<<<< SEARCH\n        y[None, i].store((v / (1.0 + cute.math.exq(-v))).to(y.element_type))\n=======\n        y[None, i].store((v / (1.0 + cute.math.exp(-v))).to(y.element_type))\n>>>>>>> REPLACE\n\`\`\`\n"}
END
    run cutegen run "$swish" --target cutedsl --model replay:dsl.jsonl --depth 1 "${small[@]}"
    ok "a run in the CuTe DSL ends with a verified kernel" 0 '^best'
    ok "... after a reply in Triton" 0 'no kernel in the CuTe DSL'
    ok "... and one that does not build, with the file's line" 0 "candidate\.py:[0-9]+|exq"
    run cutegen show last --json
    ok "the language is stored with the run" 0 '"target": ?"cutedsl"'
    run cutegen eval last "${small[@]:0:4}"
    ok "its best kernel is judged once more" 0 'language  cutedsl'
else
    skip "a run in the CuTe DSL" "no CuTe DSL in $CUTEGEN_DSL_PYTHON"
fi

# ---- with Triton -----------------------------------------------------------------------
if ! "${CUTEGEN_PYTHON:-python3}" -c 'import triton' 2>/dev/null; then
    run cutegen run "$swish" --target triton --model "$replay" "${small[@]}"
    ok "without Triton a run says what to install" 3 'pip install triton'
    skip "a run in Triton, resumed, shown, remembered" "no Triton in ${CUTEGEN_PYTHON:-python3}"
    echo "1..$n"
    exit $failed
fi

run cutegen run "$swish" --target triton --model "$replay" --depth 2 "${small[@]}"
ok "a run in Triton ends with a verified kernel" 0 '^best +.*depth 2'
ok "... after a reply in CUDA" 0 'no kernel in Triton'
ok "... a compile error with the file's line" 0 'candidate\.py:8: Triton: arange'
ok "... wrong values, and repairs" 0 'wrong values'
first=$(cutegen runs --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["runs"][0]["run"])')
run cutegen show last --source
ok "its kernel is Python" 0 '^import triton\.language as tl'
printf '%s\n' "$out" >best.py
run cutegen show last --json
ok "the language is stored with the run" 0 '"target": ?"triton"'
run cutegen show last --calls --json
ok "the model was told which language was wrong" 0 'written in CUDA C\+\+, and this run wants Triton'
run cutegen eval "$swish" best.py "${small[@]:0:4}"
ok "the kernel passes on its own" 0 'language  triton'
run cutegen eval last "${small[@]:0:4}"
ok "... and as the run's best" 0 'language  triton'
run cutegen report last --output page.html
ok "it has a page" 0 'page\.html'
run grep -c 'candidate.py\|triton' page.html
ok "... that shows it" 0 '^[1-9]'
run grep -c '<span class="tc"># (BLOCK)</span>' page.html
ok "... with Python's comments as such" 0 '^[1-9]'

# What ships is what was judged: code and launch list, verified from the export alone.
run cutegen export last --output out
ok "it is exported" 0 'out'
run find out -name '*.triton'
ok "... with its source, which nothing can import" 0 'swish\.triton'
run cutegen verify out
ok "the export is what was judged: files, code, source built again, launches, verdict" 0 'pass on simt'
for step in files python source launches judge; do
    printf -v pattern "^%s +ok" "$step"
    ok "... $step" 0 "$pattern"
done
sed -i 's/BLOCK=1024/BLOCK=512/' out/swish.triton
run cutegen verify out
ok "another source is found" 1 'swish\.triton is not what the record says'

# What other runs learnt is of kernels in the same language.
hard=$root/examples/hard_sigmoid.py
run cutegen prompt "$hard" --target triton
ok "another task is told what was learnt in Triton" 0 'one launch, nothing intermediate in memory'
run cutegen prompt "$hard"
run grep -c 'What other runs learnt' <<<"$out"
ok "CuTe is not told of it" 1 '^0$'

# Killed while it judges, then gone on with. The warm server would outlive it: this one has its own.
CUTEGEN_SERVER=no "$program" run "$swish" --target triton --model "$replay" --depth 2 "${small[@]}" >killed.out 2>&1 &
pid=$!
until run cutegen show last --json && [ "$(grep -o '"stage": *"repair"' <<<"$out" | wc -l)" -gt 0 ] && ! grep -q "\"$first\"" <<<"$out"; do
    kill -0 $pid 2>/dev/null || break
    sleep 0.2
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
run cutegen resume last --target cute
ok "killed, a run goes on in its language whatever is asked for" 0 '^best +.*depth 2'
ok "... and says so" 0 '--target is ignored'
run cutegen show last --source
ok "... to the same kernel" 0 '^import triton\.language as tl'
run cmp <(printf '%s\n' "$out") best.py
ok "... letter by letter" 0 ''

# Several lines of development; a suite.
cat >many.jsonl <<END
{"stage": "synthesize", "reply_file": "$root/examples/replays/swish-triton/02-synthesize.md"}
{"stage": "synthesize", "reply_file": "whole.md"}
{"stage": "synthesize", "reply_file": "whole.md"}
{"stage": "diagnose", "reply": "line 8"}
{"stage": "repair", "reply_file": "$root/examples/replays/swish-triton/04-repair.md"}
{"stage": "diagnose", "reply": "line 10"}
{"stage": "repair", "reply_file": "$root/examples/replays/swish-triton/06-repair.md"}
{"stage": "optimize", "reply_file": "$root/examples/replays/swish-triton/07-optimize.md"}
{"stage": "optimize", "reply": "STOP: enough"}
{"stage": "optimize", "reply": "STOP: enough"}
END
{ echo "CHANGE: whole"; echo '```python'; cat "$root/examples/triton/swish.py"; echo '```'; } >whole.md
run cutegen run "$swish" --target triton --model replay:many.jsonl --search beam --beam 2 --depth 1 "${small[@]}"
ok "two lines of development in Triton" 0 '^best'
run cutegen run "$swish" --target triton --model replay:many.jsonl --search restarts --restarts 2 --depth 2 "${small[@]}"
ok "restarts in Triton" 0 '^best'
mkdir tasks
cp "$swish" tasks/
cat >one.jsonl <<END
{"stage": "synthesize", "reply_file": "whole.md"}
END
run cutegen suite tasks --target triton --model replay:one.jsonl --depth 1 --set BATCH=64 --set DIM=1024 --json
ok "a suite in Triton" 0 '"state":"correct"'
run cutegen show last --json
ok "... whose runs are in Triton" 0 '"target": ?"triton"'

# Every worked example is right.
for task in swish softmax square_matmul conv2d attention; do
    case $task in
    swish | softmax) set=(--set BATCH=5 --set DIM=1000) kernel=$task ;;
    square_matmul) set=(--set N=70) kernel=matmul ;;
    conv2d) set=(--set BATCH=2 --set CHANNELS_IN=5 --set CHANNELS_OUT=9 --set SIZE=13) kernel=conv2d ;;
    attention) set=(--set BATCH=1 --set HEADS=2 --set LENGTH=70 --set HEAD=16) kernel=attention ;;
    esac
    run cutegen eval "$root/examples/$task.py" "$root/examples/triton/$kernel.py" "${set[@]}"
    ok "the worked example $kernel is right where blocks do not divide the sizes" 0 '^pass'
done
run cutegen eval "$root/examples/half_matmul.py" "$root/examples/triton/matmul.py" --set N=96
ok "... the product also for f16" 0 '^pass'
echo "1..$n"
exit $failed
