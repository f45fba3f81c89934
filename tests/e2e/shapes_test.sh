#!/usr/bin/env bash
# shapes_test.sh - a candidate is judged at many shapes: it must pass at all, and its time is their geometric mean.
#
#     tests/e2e/shapes_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_DRAWS=1 CUTEGEN_DEVICE=simt
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
task=$root/tests/cheats/tasks/rows.py
n=0
failed=0

# ok SENTENCE COMMAND... : the command succeeds.
ok()
{
    n=$((n + 1))
    if "${@:2}" >/dev/null 2>&1; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    { tail -n 25 log result; head -c 1000 shown.json; } 2>&1 | sed 's/^/# /'
    failed=1
}

shows() # PYTHON-EXPRESSION over the JSON of the run, r, and its best attempt, b
{
    python3 -c 'import json, math, sys
r = json.load(open("shown.json"))
b = next((a for a in r["attempts"] if a["attempt"] == r["best_attempt"]), None)
sys.exit(0 if eval(sys.argv[1]) else 1)' "$1"
}

"$program" run "$task" --shapes ROWS=1,8:2,64 --depth 1 --no-report >result 2>log
ok "a run at three shapes finds a kernel" [ $? = 0 ]
"$program" show last --json >shown.json 2>>log
"$program" show last >shown 2>>log
ok "each shape has its label, verdict and time" \
    shows 'sorted(s["label"] for s in b["shapes"]) == ["ROWS=1", "ROWS=64", "ROWS=8"] and all(s["verdict"] == "pass" and s["time_us"] > 0 for s in b["shapes"])'
ok "the main shape is the largest" shows 'b["shapes"][0]["label"] == "ROWS=64"'
ok "shapes are those that were asked for" shows '{s["inputs"][0]["shape"][0] for s in b["shapes"]} == {1, 8, 64}'
ok "the time is the geometric mean by weight" \
    shows 'math.isclose(math.log(b["time_us"]) * 4, sum(s["weight"] * math.log(s["time_us"]) for s in b["shapes"]), rel_tol=1e-6)'
ok "one build serves all shapes" shows 'len({s["module_hash"] for s in b["shapes"]}) == 1 and b["shapes"][0]["module_hash"]'
ok "show lists them" grep -q "ROWS=8 " shown
"$program" resume last --depth 2 --no-report >result 2>log
ok "a resumed run keeps its shapes" bash -c "'$program' show last --json | grep -q 'ROWS=64'"

# ---- a type of each shape ----
cat >types.py <<'END'
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs_list():
    return [[torch.randn(64)], [torch.randn(32).half()]]
END
"$program" run types.py --no-report >result 2>log
ok "the built-in engineer says that it writes one type" grep -qi 'one dtype for each input, and at inputs 1 x is f16, otherwise f32' result log

# right for 64 rows alone
cat >fixed.cu <<'END'
#include <cutegen/kernel.h>

#ifdef CUTEGEN_DEVICE
#include <cute/tensor.hpp>

__global__ void rows(float const *x, float *y, int columns)
{
    using namespace cute;
    Tensor gX = make_tensor(make_gmem_ptr(x + int64_t(blockIdx.x) * columns), make_shape(columns)); // (columns)
    float sum = 0.0f;
    for (int i = 0; i < columns; ++i)
        sum += gX(i);
    y[blockIdx.x] = sum;
}
#endif

#ifdef CUTEGEN_HOST
CUTEGEN_PLAN(call)
{
    const struct cutegen_tensor *x = &call->in[0];

    CUTEGEN_REQUIRE(call, x->shape[0] == 64, "64 rows");
    return CUTEGEN_LAUNCH(call, (rows), cutegen_dim3(x->shape[0], 1, 1), cutegen_dim3(1, 1, 1), 0,
                          CUTEGEN_DATA(float const, x), CUTEGEN_DATA(float, &call->out[0]),
                          (int)x->shape[1]);
}
#endif
END
"$program" eval "$task" fixed.cu --shapes ROWS=8,64 --json >result 2>log
ok "a kernel that fails at one shape fails" [ $? = 1 ]
ok "its verdict names the shape" grep -q '"summary": *"at ROWS=8: ' result
"$program" eval "$task" fixed.cu --set ROWS=64 --json >result 2>log
ok "at the other alone it passes" [ $? = 0 ]

# several sets of inputs in the task
cat >several.py <<'END'
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) * x


def get_inputs_list():
    return [[torch.rand(4, 100)], [torch.rand(33, 64)], [torch.rand(2, 3, 8)]]


def get_init_inputs():
    return []
END
"$program" run several.py --depth 0 --no-report >result 2>log
ok "a task with several sets of inputs is judged at each" [ $? = 0 ]
"$program" show "$(sed -n 's/^run *//p' result)" --json >shown.json 2>>log
ok "they are numbered" \
    shows 'sorted(s["label"] for s in b["shapes"]) == ["inputs 0", "inputs 1", "inputs 2"] and sorted(len(s["inputs"][0]["shape"]) for s in b["shapes"]) == [2, 2, 3]'
"$program" run "$task" --shapes ROWS=1,x --no-report >result 2>log
ok "what is not a list of sizes is refused, with the form" bash -c '[ '$?' = 2 ] && grep -q "NAME=NUMBER,NUMBER" log'
"$program" run "$task" --shapes NOPE=1,2 --no-report >result 2>log
ok "a constant that the task does not have is refused" bash -c '[ '$?' = 2 ] && grep -q "no integer constant" log'
echo "1..$n"
exit $failed
