#!/usr/bin/env bash
# build_test.sh - kernels built without their GPU: at full size, found by content, never run.
#
#     tests/e2e/build_test.sh PATH-TO-CUTEGEN
set -u
program=$(readlink -f "$1")
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$program" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export XDG_CONFIG_HOME=$work/config CUTEGEN_RUNS=$work/runs CUTEGEN_CACHE=$work/cache
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
n=0
failed=0

# ok SENTENCE CODE
ok()
{
    n=$((n + 1))
    if [ "$2" = 0 ]; then
        echo "ok $n - $1"
        return
    fi
    echo "not ok $n - $1"
    tail -15 out 2>/dev/null | sed 's/^/# /'
    failed=1
}

# task NAME FORWARD SHAPES...
task()
{
    printf 'import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, %s):\n        return %s\n\n' "$3" "$2"
    printf 'def get_inputs():\n    return [%s]\n\ndef get_init_inputs():\n    return []\n' "$4"
}
task scaled 'torch.relu(x) * 2' x 'torch.randn(4096, 393216)' >scaled.py
task softmax 'torch.softmax(x, 1)' x 'torch.rand(1300, 1024)' >softmax.py
task product 'torch.relu(x @ w.t())' 'x, w' 'torch.rand(1100, 130), torch.rand(1500, 130)' >product.py
task several 'torch.softmax(x @ w.t(), 1).amax(0)' 'x, w' 'torch.rand(600, 64), torch.rand(72, 64)' >several.py
# No number in it can be smaller for itself, and 9.6e9 flops are too many for simt.
task literal 'x.view(-1, 16, 128, 8, 96).flatten(1, 2).flatten(2) @ w.view(8 * 96, 32, 96).flatten(1)' 'x, w' \
    'torch.rand(1, 2048, 768), torch.rand(768, 3072)' >literal.py
task attention 'torch.nn.functional.scaled_dot_product_attention(q, k, v)' 'q, k, v' '*[torch.rand(2, 2, 64, 512) for _ in range(3)]' >attention.py
task random 'torch.rand_like(x)' x 'torch.rand(300, 300)' >random.py

# 6.4 GB a tensor, in less memory than one of them.
"$program" build scaled.py --device for:H200 --depth 0 --task-memory 4000 --json >out 2>&1 &&
    grep -q '"kernels": *1' out && grep -q '"found": *0' out && grep -q sm_90a out
ok "a task of 6.4 GB tensors is described and its kernel compiled without them" $?

cp -r cache elsewhere
include=$("$program" doctor | sed -n 's/^ok *CuTe .*  \(\/.*\)$/\1/p')
cp -rL "$include" headers
CUTEGEN_CACHE=$work/elsewhere "$program" build scaled.py --device for:H200 --depth 0 --cutlass "$work/headers" --out files --json >out 2>&1 &&
    grep -q '"found": *1' out
ok "another cache folder and another copy of CUTLASS: it is found, not compiled" $?

python3 - 2>>out <<'FILES'
import json
case = json.load(open("files/scaled.json"))
names = [op["kernel"] for op in case["ops"] if op["op"] == "launch"]
right = names and all(case["names"][n].encode() in open("files/scaled.cubin", "rb").read() for n in names)
right = right and case["inputs"][0]["shape"] == [4096, 393216] and "CUTEGEN_PLAN" in open("files/scaled.cu").read()
raise SystemExit(0 if right else f"not a kernel and its launches: {names}")
FILES
ok "--out writes the kernel and a launch list that names it" $?

"$program" build several.py --device for:H200 --depth 0 >out 2>&1 &&
    "$program" build several.py --device for:H200 --depth 1 --out files >out 2>&1 && grep -q ' 2 found' out &&
    cmp files/several.cubin files/several~1.cubin >>out 2>&1 && ! grep -q '"overlap":true' files/several.json &&
    python3 -c 'import json
ops = json.load(open("files/several~1.json"))["ops"]
first = [op["op"] for op in ops].index("launch")
raise SystemExit(not all(bool(op.get("overlap")) == (k > first) for k, op in enumerate(ops) if k >= first) or len(ops) < first + 3)' >>out 2>&1
ok "launches of several parts overlap by the plan alone, from the second one on: no kernel is compiled" $?

"$program" build random.py scaled.py --depth 0 >out 2>&1
[ $? = 1 ] && grep -q 'random.py .*forward is random' out && grep -q '1 found' out
ok "a task that cannot be described does not keep the others from it" $?

"$program" eval scaled.py "$root/tests/cheats/honest.cu" --device for:H200 >out 2>&1
[ $? = 2 ] && grep -q 'nothing runs on a H200 that is not here' out
ok "nothing is judged on a GPU that is not here" $?

"$program" build scaled.py --device for:Voodoo >out 2>&1
[ $? = 2 ] && grep -q 'GPUs it knows' out
ok "a GPU that is not known is wrong use" $?

"$program" describe literal.py --device for:H200 --json >shapes.json 2>out && grep -q '2048' shapes.json
ok "a task whose numbers cannot be smaller is described for a GPU that is not here" $?

for name in softmax product; do
    "$program" describe $name.py --device for:H200 --json >shapes.json 2>out &&
        "$program" describe $name.py --device simt --no-scale --json >tensors.json 2>>out &&
        python3 - 2>>out <<'SAME'
import json
a, b = json.load(open("shapes.json")), json.load(open("tensors.json"))
same = ("inputs", "outputs", "graph", "class", "bytes_min", "flops_min", "flops", "scaled", "of_sizes", "tolerance")
differ = [k for k in same if a[k] != b[k]]
raise SystemExit(f"differ: {differ}" if differ else 0)
SAME
    ok "$name is described from shapes as it is with its tensors" $?
done

if "$program" describe attention.py --device for:H200 --json >shapes.json 2>out; then
    grep -q '_scaled_dot_product_efficient_attention' shapes.json && ! grep -q '"op": *"aten.mul.Scalar' shapes.json
    ok "attention is described from shapes as the one operator that a GPU has" $?
else
    grep -q 'scaled_dot_product_attention' out
    ok "attention is described from shapes # SKIP this PyTorch has none" $?
fi

echo "1..$n"
exit $failed
