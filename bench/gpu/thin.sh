#!/usr/bin/env bash
# thin.sh - products with few rows: the end of the built-in engineer's ladder, judged, beside PyTorch and the floor.
#
#     bench/gpu/thin.sh CUTEGEN-TREE LADDER OUT.md [NAME...]
#
# NAME is mROWS_FORM_TYPE_SIZE, such as m16_nt_f32_16384: (ROWS x SIZE) by (SIZE x SIZE), nt: weights as nn.Linear has them.
set -u
root=$(readlink -f "$1") ladder=$(readlink -f "$2") out=$3
shift 3
names=${*:-m1_nt_f32_16384 m16_nt_f32_16384 m64_nt_f32_16384 m128_nt_f32_32768 m128_nn_f32_32768 m8_nn_f32_16384 m32_nn_f32_16384
    m1_nt_f16_16384 m16_nt_f16_16384 m64_nt_f16_16384 m64_nn_f16_16384 m16_nn_bf16_16384 m1_nt_f16_4096 m16_nt_f32_4096}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CUTEGEN_CACHE=$work/cache CUTEGEN_RUNS=$work/runs CUTEGEN_RUNTIME=$work/rt CUTEGEN_SERVER=yes CUTEGEN_DEVICE=cuda:0
export CUTEGEN_PYTHON=${CUTEGEN_PYTHON:-$(command -v python3)}

task()
{
    IFS=_ read -r rows form type size <<<"$1"
    case $type in f32) type=float32 ;; f16) type=float16 ;; bf16) type=bfloat16 ;; esac
    [ "$form" = nt ] && expression='torch.nn.functional.linear(a, b)' || expression='a @ b'
    cat >"$work/$1.py" <<TASK
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return $expression

def get_inputs():
    return [torch.randn(${rows#m}, $size).to(torch.$type), torch.randn($size, $size).to(torch.$type)]

def get_init_inputs():
    return []
TASK
    mkdir -p "$work/$1"
    "$root/bin/cutegen" describe "$work/$1.py" --json >"$work/$1.json" 2>"$work/$1.err" &&
        CUTEGEN_HOME=$root/share/cutegen LD_LIBRARY_PATH=$root/lib "$ladder" "$work/$1.json" "$work/$1" sm_90a 'try ' >/dev/null 2>"$work/$1.err"
}
one() # the whole output of one judgement, as a row
{
    "$root/bin/cutegen" eval "$work/$1.py" "$(find "$work/$1" -name '*.cu' | sort -V | tail -1)" ${DRAWS:+--draws $DRAWS} --json 2>>"$work/$1.err" | python3 -c '
import json, sys
name, (rows, form, kind, size) = sys.argv[1], sys.argv[1].split("_")
bytes_ = int(size) ** 2 * (4 if kind == "f32" else 2)
text = sys.stdin.read()
try:
    r = json.loads(text.strip().splitlines()[-1])
except (ValueError, IndexError):
    sys.exit(print(f"| {name} | no verdict: {text[-200:]!r} |"))
m = r.get("measurement") or {}
t = m.get("time_us") or 0
eager = next((b["cold_us"] for b in m.get("baselines", []) if b["name"] == "eager"), 0)
v = r["verdict"] if r["verdict"] == "pass" else r["verdict"] + ": " + r["summary"][:120]
print(f"| {name} | {v} | {t:.1f} | {eager:.1f} | {eager / t if t else 0:.2f} | {bytes_ / 4.35e6 / t * 100 if t else 0:.0f} % |")
' "$1"
}
for name in $names; do
    task "$name" &
done
wait
for name in $names; do
    ls "$work/$name"/*.cu >/dev/null 2>&1 || cat "$work/$name.err"
done
for name in $names; do # builds beside each other
    (timeout 100 "$root/bin/cutegen" eval "$work/$name.py" "$(find "$work/$name" -name '*.cu' | sort -V | tail -1)" --draws 1 >/dev/null 2>&1) &
    while [ "$(jobs -r | wc -l)" -ge 8 ]; do wait -n; done
done
wait
{
    echo "| product | verdict | us | eager us | over eager | of the floor at 4.35 TB/s |"
    echo "|---|---|---|---|---|---|"
    for name in $names; do
        one "$name"
    done
} | tee "$out"
"$root/bin/cutegen" server stop >/dev/null 2>&1
