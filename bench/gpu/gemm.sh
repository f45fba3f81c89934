#!/usr/bin/env bash
# gemm.sh - the table of matrix products on a GPU: ratio to eager with TF32 off, in the same run.
#
#     bench/gpu/gemm.sh CUTEGEN OUT [KERNELS] [ROW...]
#
# For each row the built-in engineer climbs its ladder (`cutegen run`), and the best kernel is judged once
# more (`cutegen eval`). With KERNELS (a folder; - for none) a row whose kernel KERNELS/ROW.cu is there is
# only judged. OUT gets a line per row; bench/gpu/gemm.py turns the JSON beside it into the table.
set -u
cutegen=$(readlink -f "$1") out=$2 kernels=${3:--}
shift; shift; [ $# -eq 0 ] || shift
here=$(dirname "$(readlink -f "$0")")
examples=$(dirname "$cutegen")/../share/cutegen/examples
[ -d "$examples" ] || examples=$here/../../examples
rows=${*:-square_matmul symmetric_matmul transposed_a_matmul transposed_b_matmul transposed_both_matmul matmul
 irregular_matmul batched_matmul tensor3d_matmul tensor4d_matmul large_k_matmul small_k_matmul tall_skinny_matmul
 upper_triangular_matmul lower_triangular_matmul linear_gelu linear_residual mlp half_matmul bfloat16_matmul
 half_batched_matmul bfloat16_batched_matmul half_linear_gelu bfloat16_linear_gelu}
mkdir -p "$out"
for row in $rows; do
    kernel=$kernels/$row.cu
    if [ ! -f "$kernel" ]; then
        "$cutegen" run "$examples/$row.py" --device cuda:0 --quiet --no-report >"$out/$row.run" 2>&1
        "$cutegen" export last -o "$out/$row.export" >/dev/null 2>&1
        kernel=$(ls "$out/$row.export"/*.cu 2>/dev/null | head -1)
        [ -n "$kernel" ] || { echo "$row: no kernel"; tail -2 "$out/$row.run"; continue; }
    fi
    "$cutegen" eval "$examples/$row.py" "$kernel" --device cuda:0 --json >"$out/$row.json" 2>"$out/$row.err"
    python3 "$here/gemm.py" "$out/$row.json" || tail -2 "$out/$row.err"
done
