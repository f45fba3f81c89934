#!/usr/bin/env bash
# demo.sh - what `make demo` shows: tasks from PyTorch to a verified kernel, an exported module, and the report.
set -euo pipefail
cd "$(dirname "$0")/../.."
cutegen=build/release/src/cutegen
[ -x $cutegen ] || cutegen=build/release/cutegen
export CUTEGEN_RUNS=${CUTEGEN_RUNS:-runs}

show()
{
    printf '\n$ cutegen %s\n' "$*"
    "$cutegen" "$@"
}

show doctor
show run examples/swish.py --fresh
swish=$("$cutegen" runs --json | sed -n 's/.*"runs":\[{"run":"\([^"]*\)".*/\1/p')
show run examples/softmax.py --fresh
show run examples/square_matmul.py --fresh
echo
echo "A recorded model: its first kernel does not compile, its second is wrong; small edits repair both."
show run examples/swish.py --model replay:examples/replays/swish-repaired.jsonl
show runs

# The exported module on this machine's PyTorch: judged on simt, its code runs there, at the judged (reduced) shape.
module=$("$cutegen" export "${swish:-last}" --output "$CUTEGEN_RUNS/demo-swish" --json | sed -n 's/.*"module":"\([^"]*\)".*/\1/p')
python=$("$cutegen" config --json | sed -n 's/.*"python":{"value":"\([^"]*\)".*/\1/p')
python=${python:-python3}
printf '\n$ %s, with %s\n' "$python" "$module"
CUTEGEN_PROGRAM=$PWD/$cutegen "$python" -W ignore - "$module" <<'END'
import importlib.util
import sys

import torch

spec = importlib.util.spec_from_file_location("swish_new", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
(x,) = module.get_inputs()
difference = (module.ModelNew()(x) - module.Model()(x)).abs().max().item()
print(f"ModelNew on the CPU, through simt: {tuple(x.shape)}, largest difference from Model {difference:.1e}")
sys.exit(difference > 1e-5)
END
