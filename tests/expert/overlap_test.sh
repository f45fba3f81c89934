#!/usr/bin/env bash
# overlap_test.sh - launches that overlap: kernels composed for Hopper pass simt's judge, and without one of their waits
# they do not. The first kernel that is launched waits for nothing: each other wait is found when it is missing.
#
#     tests/expert/overlap_test.sh LADDER CUTEGEN [all]         all: every wait of more tasks (SWEEP=modules)
set -u
ladder=$(readlink -f "$1") cutegen=$(readlink -f "$2") all=${3:-}
CUTEGEN_HOME=${CUTEGEN_HOME:-$(cd "$(dirname "$0")/../.." && pwd)}
export CUTEGEN_HOME
work=$(mktemp -d)
trap 'CUTEGEN_RUNTIME=$work/rt "$cutegen" server stop >/dev/null 2>&1; rm -rf "$work"' EXIT
export CUTEGEN_SERVER=yes CUTEGEN_RUNTIME=${CUTEGEN_TEST_RUNTIME:-$work/rt} # the suite's warm server, or its own
cd "$work" || exit 3
failed=0

# task NAME RESULT ARGUMENTS INPUTS
task() {
    printf 'import torch\nimport torch.nn.functional as F\n\n\nclass Model(torch.nn.Module):\n    def forward(self, %s):\n        return %s\n\n\n' "$3" "$2"
    printf 'def get_inputs():\n    return [%s]\n\n\ndef get_init_inputs():\n    return []\n' "$4"
}
task product 'torch.softmax(F.relu(x @ w.t()) @ v.t(), 1)' 'x, w, v' \
    'torch.rand(130, 68), torch.rand(72, 68), torch.rand(76, 72)' >product.py
task parts '(x.std() + x.mean(1, keepdim=True)).sum(0)' x 'torch.rand(96, 300)' >parts.py
task convolved 'F.max_pool2d(F.relu(F.conv2d(x, w)), 2)' 'x, w' 'torch.rand(2, 16, 18, 20), torch.rand(32, 16, 3, 3)' >convolved.py
task cleared '(x @ w.t()) @ v.t()' 'x, w, v' 'torch.rand(260, 260), torch.rand(264, 260), torch.rand(268, 264)' >cleared.py
task thin 'torch.sigmoid(x @ w.t()) @ v.t()' 'x, w, v' 'torch.rand(4, 256), torch.rand(512, 256), torch.rand(320, 512)' >thin.py
task attention '(torch.softmax(q @ k.transpose(1, 2) * 0.125, -1) @ v).cumsum(1)' 'q, k, v' \
    'torch.rand(2, 192, 64), torch.rand(2, 192, 64), torch.rand(2, 192, 64)' >attention.py

# judge KERNEL: says why not
judge() {
    "$cutegen" eval "$name.py" "$1" --device simt --simt-arch 90a --no-scale --draws 2 2>&1
}

for name in ${NAMES:-product parts} ${all:+convolved cleared thin attention}; do
    "$cutegen" describe "$name.py" --device simt --no-scale --json >"$name.json" &&
        "$ladder" "$name.json" . sm_90a >out 2>&1
    last=$(find . -name "$name.*.cu" | sort -t. -k3 -n | tail -1)
    if ! grep -q 'launch_flags = CUTEGEN_OVERLAP' "$last"; then
        echo "$name: FAILED: its ladder does not end with launches that overlap"
        failed=1
        continue
    fi
    said=$(judge "$last") || { echo "$name: FAILED: $said" && failed=1; }
    waits=$(grep -c 'cutegen_wait_for_earlier();' "$last") found=0 missed=
    for ((k = 1; k <= waits; k++)); do
        awk -v k="$k" '/cutegen_wait_for_earlier\(\);/ && ++n == k { next } { print }' "$last" >without.cu
        said=$(judge without.cu)
        if grep -q 'before griddepcontrol.wait' <<<"$said"; then found=$((found + 1)); else missed="$missed $k"; fi
        [ -n "$all" ] || [ "$found" -eq 0 ] || break
    done
    echo "$name: $(basename "$last"), $waits waits; without one, found: $found${missed:+, not found:$missed}"
    [ "$found" -ge "$([ -n "$all" ] && echo $((waits - 1)) || echo 1)" ] ||
        { echo "$name: FAILED: a missing wait is not found: $said" && failed=1; }
done
exit "$failed"
